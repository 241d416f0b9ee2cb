"""Compilations in this process, whoever asks torch for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_ENTRIES: tuple[tuple[Any, str], ...] = (
    (torch.jit, "trace"),
    (torch.jit, "trace_module"),
    (torch.jit, "script"),
    (torch.export, "export"),
)
"""Functions that compile or capture a whole module on each call."""


def count_compilations() -> Callable[[], int]:
    """Count compilations from now on; return a function with the count so far.

    A frame that dynamo compiles counts once, and so does a call of one of `_ENTRIES`. Nested
    calls of these do not count again. The functions stay wrapped: this is for
    a process that ends with its run.
    """
    from torch._dynamo.callback import CallbackTrigger, callback_handler

    count = depth = 0

    def note_frame(arguments: Any) -> None:
        nonlocal count
        count += depth == 0 and arguments.callback_trigger is CallbackTrigger.DYNAMO

    def counted(entry: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(entry)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count, depth
            count += depth == 0
            depth += 1
            try:
                return entry(*args, **kwargs)
            finally:
                depth -= 1

        return call

    for owner, name in _ENTRIES:
        setattr(owner, name, counted(getattr(owner, name)))

    def count_so_far() -> int:
        # `torch._dynamo.reset`, which arms call before they compile, forgets all callbacks.
        if note_frame not in callback_handler.start_callbacks:
            callback_handler.register_start_callback(note_frame)
        return count

    count_so_far()
    return count_so_far
