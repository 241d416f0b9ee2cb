"""Matching of operators that open and close regions, without running the graph.

Autocast, inference-mode and vmap regions have an opening and a closing operator. Grad-mode
switches come in pairs, of which the second restores the previous mode.
"""

from __future__ import annotations

import dataclasses

from ...sample import Sample
from ...sample.arguments import Ref
from ..results import Region
from .building.entries import entries_of
from .operators.python import GRAD_MODE, PAIRS, VMAP

CLOSERS = {closer: opener for opener, closer in PAIRS.items()}
"""Closing operators of regions, and the operators that open them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pairing:
    """The regions of a graph in the order in which they close, and unmatched operators.

    `misplaced` operators close a region that is not the innermost open one. `left_open` operators
    open a region that is never closed.
    """

    regions: tuple[Region, ...]
    misplaced: tuple[int, ...]
    left_open: tuple[int, ...]


def find_regions(sample: Sample) -> tuple[Region, ...]:
    """Return the regions of a sample in the order in which they close.

    Raises:
        UnknownOperatorError: If an operator is not in the table.
    """
    return pair(sample).regions


def pair(sample: Sample) -> Pairing:
    """Match the operators that open and close the regions of a sample.

    Raises:
        UnknownOperatorError: If an operator is not in the table.
    """
    all_regions: list[Region] = []
    misplaced: list[int] = []
    opened: list[tuple[str, int]] = []
    grad_mode: list[int] = []
    for position, (op, entry) in enumerate(zip(sample.ops, entries_of(sample), strict=True)):
        name = entry.name
        if name in PAIRS:
            opened.append((name, position))
        elif name in CLOSERS:
            opener = CLOSERS[name]
            places = [
                place for place, (name_opened, _) in enumerate(opened) if name_opened == opener
            ]
            if not places:
                misplaced.append(position)
                continue
            is_innermost = places[-1] == len(opened) - 1
            _, start = opened.pop(places[-1])
            # Except for vmap, the closing operator takes the region as its argument.
            expected_args = () if opener == VMAP else (Ref(len(sample.inputs) + start),)
            if not is_innermost or op.args != expected_args or op.kwargs:
                misplaced.append(position)
            all_regions.append(Region(start, position, is_closed=opener == VMAP))
        elif name == GRAD_MODE:
            if grad_mode:
                all_regions.append(Region(grad_mode.pop(), position, is_closed=False))
            else:
                grad_mode.append(position)
    left_open = (*(position for _, position in opened), *grad_mode)
    return Pairing(tuple(all_regions), tuple(misplaced), left_open)
