"""Diagnosis of differences between a module and its captured graphs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .replay import first_difference
from .state import State

_NOT_REPEATABLE = (
    "A second call from the same state computes something else too, so the module depends on "
    "state that cannot be restored, such as an iterator, a file or the time. Pass such values as "
    "arguments, or capture the parts of the module that do not depend on them."
)
_COMPILING = (
    "The module computes something else while `torch.compiler.is_compiling()` is true, as it is "
    "during a trace. Let both cases compute the same; `torch.nn.TransformerEncoder` does so with "
    "`enable_nested_tensor=False`."
)
_UNTRACED = (
    "A trace records neither the state of Python objects, nor torch's default dtype, nor random "
    "numbers from other generators than those of torch. Pass such values as arguments, or capture "
    "the parts of the module that do not depend on them."
)


def cause_of_difference(call: Callable[[], Any], before: State, expected: Mapping[str, Any]) -> str:
    """Explain a difference and its remedy in whole sentences.

    `call` calls the module. It runs twice, each time from the state `before`. `expected` contains
    the outputs of the first call, from `keep_leaves`.
    """
    for mode, cause in (
        (contextlib.nullcontext, _NOT_REPEATABLE),
        (_compiling, _COMPILING),
    ):
        before.restore()
        try:
            with mode():
                outputs = call()
        except Exception:  # modules may raise any exception
            return cause
        if first_difference(outputs, expected):
            return cause
    return _UNTRACED


@contextlib.contextmanager
def _compiling() -> Iterator[None]:
    """Make `torch.compiler.is_compiling()` return True."""
    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before
