"""Regions that a graph opens and closes (autocast, vmap, inference mode, grad mode).

They change the state of the process, so a graph that leaves one open would change how everything
after it runs; such a graph is refused before it runs.
"""

from __future__ import annotations

from typing import Any

import torch

from ....errors import MaterializeError
from ....sample import Sample
from ....sample.arguments import Ref
from ..operators import Operator, lookup, resolve
from ..operators.python import PAIRS
from .entries import entries_of

AUTOCAST = "torch.amp.autocast_mode._enter_autocast"
_LOG_USAGE = "torch._C._log_api_usage_once"
_VMAP_ENTER = "torch._functorch.predispatch._vmap_increment_nesting"
_GRAD_MODE = "torch._C._set_grad_enabled"
_CLOSERS = {closer: opener for opener, closer in PAIRS.items()}


def has_regions(sample: Sample) -> bool:
    """Tell whether a sample opens a region or sets the grad mode."""
    return any(entry.name in PAIRS or entry.name == _GRAD_MODE for entry in entries_of(sample))


def check_regions(sample: Sample) -> None:
    """Check that every region is closed, innermost first, and that grad mode is set in pairs.

    Raises:
        MaterializeError: a region stays open or is closed without having been opened.
    """
    opened: list[tuple[str, int]] = []
    num_grad_mode = 0
    for position, (op, entry) in enumerate(zip(sample.ops, entries_of(sample), strict=True)):
        name = entry.name
        value = len(sample.inputs) + position
        if name in PAIRS:
            opened.append((name, value))
        elif name in _CLOSERS:
            wanted = _CLOSERS[name]
            by_value = () if wanted == _VMAP_ENTER else (Ref(opened[-1][1] if opened else -1),)
            if not opened or opened[-1][0] != wanted or op.args != by_value or op.kwargs:
                raise MaterializeError(
                    f"Op {position} (`{op.target}`) of `{sample.id}` closes a region that is not "
                    "the innermost open one. Capture the sample again."
                )
            opened.pop()
        elif name == _GRAD_MODE:
            num_grad_mode += 1
    if opened:
        name, value = opened[-1]
        raise MaterializeError(
            f"Op {value - len(sample.inputs)} (`{name}`) of `{sample.id}` opens a region that no "
            "operator closes, which would change how everything after the graph runs. Capture "
            "the sample again."
        )
    if num_grad_mode % 2:
        raise MaterializeError(
            f"`{sample.id}` sets the grad mode {num_grad_mode} times, so it would not restore it. "
            "Capture the sample again."
        )


class Regions:
    """Opens and closes regions while a graph is walked, and closes what a failed walk left open."""

    def __init__(self) -> None:
        self._opened: list[tuple[str, Any]] = []
        self._grad_mode = True

    def __enter__(self) -> Regions:
        self._grad_mode = torch.is_grad_enabled()
        return self

    def __exit__(self, *_: object) -> None:
        while self._opened:
            name, value = self._opened.pop()
            close = resolve(lookup(PAIRS[name]))
            close() if name == _VMAP_ENTER else close(value)
        torch._C._set_grad_enabled(self._grad_mode)

    @property
    def is_open(self) -> bool:
        """Whether a region is open, in which operators may mean something else."""
        return bool(self._opened)

    def call(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a state operator and remember what it opened or closed."""
        if operator.name == _LOG_USAGE:
            return None
        result = resolve(operator)(*args, **kwargs)
        if operator.name in PAIRS:
            self._opened.append((operator.name, result))
        elif operator.name in _CLOSERS:
            self._opened.pop()
        return result
