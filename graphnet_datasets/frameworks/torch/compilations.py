"""Counting of all torch compilations in this process."""

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
    """Start counting compilations; return a function that returns the count so far.

    Each frame compiled by dynamo and each call of a function in `_ENTRIES` counts once, except for
    nested calls. The functions stay wrapped, so use this only in a process that ends with its run.
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
        # Arms call `torch._dynamo.reset` before they compile, which removes all callbacks.
        if note_frame not in callback_handler.start_callbacks:
            callback_handler.register_start_callback(note_frame)
        return count

    count_so_far()
    return count_so_far
