"""Regions that a graph opens and closes (autocast, vmap, inference mode, grad mode).

Regions change process state. A graph that leaves a region open would affect all later code, so it
is rejected before it runs.
"""

from __future__ import annotations

from typing import Any

import torch

from ....errors import MaterializeError
from ....sample import Sample
from ..operators import Operator, lookup, resolve
from ..operators.python import GRAD_MODE, PAIRS, VMAP
from ..regions import CLOSERS, pair
from .entries import entries_of

AUTOCAST = "torch.amp.autocast_mode._enter_autocast"
_LOG_USAGE = "torch._C._log_api_usage_once"


def has_regions(sample: Sample) -> bool:
    """Return whether a sample opens a region or sets the grad mode."""
    return any(
        entry.name in PAIRS or entry.name == GRAD_MODE for entry in entries_of(sample)
    ) or any(map(has_regions, sample.iterate_bodies()))


def check_regions(sample: Sample) -> None:
    """Check that regions are closed in reverse order, and that grad mode is set in pairs.

    Raises:
        MaterializeError: If a region stays open or is closed without being opened.
    """
    pairing = pair(sample)
    for position in pairing.misplaced:
        raise MaterializeError(
            f"Op {position} (`{sample.ops[position].target}`) of `{sample.id}` closes a region "
            "that is not the innermost open one. Capture the sample again."
        )
    for position in pairing.left_open:
        raise MaterializeError(
            f"Op {position} (`{sample.ops[position].target}`) of `{sample.id}` opens a region that "
            "no operator closes, which would change how everything after the graph runs. Capture "
            "the sample again."
        )
    for body in sample.iterate_bodies():
        check_regions(body)


class Regions:
    """Opens and closes regions during a walk, and closes those that a failed walk left open."""

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
            close() if name == VMAP else close(value)
        torch._C._set_grad_enabled(self._grad_mode)

    @property
    def is_open(self) -> bool:
        """True while a region is open, which may affect operators."""
        return bool(self._opened)

    def call(self, operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a state operator and record the region it opened or closed."""
        if operator.name == _LOG_USAGE:
            return None
        result = resolve(operator)(*args, **kwargs)
        if operator.name in PAIRS:
            self._opened.append((operator.name, result))
        elif operator.name in CLOSERS:
            self._opened.pop()
        return result
