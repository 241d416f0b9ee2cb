"""The cause of a difference between a module and the graphs that were captured of it."""

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
    "A trace records neither the state of Python objects nor random numbers from other generators "
    "than those of torch. Pass such values as arguments, or capture the parts of the module that "
    "do not depend on them."
)


def cause_of_difference(call: Callable[[], Any], before: State, expected: Mapping[str, Any]) -> str:
    """Return the cause of a difference and its remedy as whole sentences.

    `call` calls the module, which is restored to the state `before` for each of two calls.
    `expected` has the outputs of the first call, from `keep_leaves`.
    """
    for mode, cause in (
        (contextlib.nullcontext, _NOT_REPEATABLE),
        (_compiling, _COMPILING),
    ):
        before.restore()
        try:
            with mode():
                outputs = call()
        except Exception:  # modules raise whatever they like
            return cause
        if first_difference(outputs, expected):
            return cause
    return _UNTRACED


@contextlib.contextmanager
def _compiling() -> Iterator[None]:
    """Let `torch.compiler.is_compiling()` be true."""
    before = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before
