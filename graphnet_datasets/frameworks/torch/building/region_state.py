"""Process state that regions change, restored when a graph fails inside a region."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import torch

_DEVICE_TYPES = ("cpu", "cuda")


class RestoringModule(torch.fx.GraphModule):
    """A graph with regions that restores autocast, grad and vmap state when a call raises.

    The captured graph opens and closes its regions with operators, without `try`.
    """

    # Only this frame is excluded from compilation; the graph inside is compiled. Helper functions
    # are excluded entirely, and a context manager is avoided because its frame would be compiled.
    @torch._dynamo.disable(fn=None, recursive=False)
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = _take_state()  # pyright: ignore[reportCallIssue]
        try:
            return super().__call__(*args, **kwargs)
        except BaseException as error:
            _restore_state(before, error.__traceback__)  # pyright: ignore[reportCallIssue]
            raise


@contextlib.contextmanager
def restored_if_it_fails() -> Iterator[None]:
    """Restore autocast, grad and vmap state if the body raises."""
    before = _State()
    try:
        yield
    except BaseException as error:
        before.restore(error.__traceback__)
        raise


class _State:
    def __init__(self) -> None:
        self.level = _vmap_level()
        self.is_inference = torch.is_inference_mode_enabled()
        self.is_grad = torch.is_grad_enabled()
        self.nesting = _autocast_nesting()
        self.has_cache = torch.is_autocast_cache_enabled()
        self.autocast = {
            device_type: (
                torch.is_autocast_enabled(device_type),
                torch.get_autocast_dtype(device_type),
            )
            for device_type in _DEVICE_TYPES
        }

    def restore(self, traceback: TracebackType | None) -> None:
        while _vmap_level() > self.level:
            torch._C._functorch._vmap_decrement_nesting()  # type: ignore[attr-defined]
        if torch.is_inference_mode_enabled() != self.is_inference:
            _leave_inference_modes(traceback)
        torch._C._set_grad_enabled(self.is_grad)
        for _ in range(_autocast_nesting() - self.nesting):
            if torch.autocast_decrement_nesting() == 0:
                torch.clear_autocast_cache()
        torch.set_autocast_cache_enabled(self.has_cache)
        for device_type, (is_enabled, dtype) in self.autocast.items():
            torch.set_autocast_enabled(device_type, is_enabled)
            torch.set_autocast_dtype(device_type, dtype)


@torch._dynamo.disable
def _take_state() -> _State:
    return _State()


@torch._dynamo.disable
def _restore_state(state: _State, traceback: TracebackType | None) -> None:
    state.restore(traceback)


def _vmap_level() -> int:
    level = torch._C._functorch.maybe_current_level()  # type: ignore[attr-defined]
    return -1 if level is None else level


def _autocast_nesting() -> int:
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def _leave_inference_modes(traceback: TracebackType | None) -> None:
    """Exit the inference-mode guards in the frames of a failed call, innermost first.

    The mode can only be changed through the guard that set it.
    """
    frames = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    for frame in reversed(frames):
        for value in reversed(list(frame.f_locals.values())):
            if isinstance(value, torch._C._InferenceMode):
                value.__exit__(None, None, None)
