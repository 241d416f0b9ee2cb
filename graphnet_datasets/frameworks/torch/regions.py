"""Which operators of a graph of torch open a region and which close it, found without running it.

Regions of autocast, of inference mode and of vmap have an operator for each end. Switches of the
grad mode come in pairs, of which the second puts back what was before.
"""

from __future__ import annotations

import dataclasses

from ...sample import Sample
from ...sample.arguments import Ref
from ..results import Region
from .building.entries import entries_of
from .operators.python import GRAD_MODE, PAIRS, VMAP

CLOSERS = {closer: opener for opener, closer in PAIRS.items()}
"""What closes a region, and what has opened it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pairing:
    """The regions of a graph in the order in which they close, and what has no place in them.

    `misplaced` are operators that close what is not the innermost open region, and `left_open` are
    those that open what nothing closes.
    """

    regions: tuple[Region, ...]
    misplaced: tuple[int, ...]
    left_open: tuple[int, ...]


def find_regions(sample: Sample) -> tuple[Region, ...]:
    """Return the regions of a sample, in the order in which they close.

    Raises:
        UnknownOperatorError: an operator is not in the table.
    """
    return pair(sample).regions


def pair(sample: Sample) -> Pairing:
    """Return what opens and closes the regions of a sample.

    Raises:
        UnknownOperatorError: an operator is not in the table.
    """
    found: list[Region] = []
    misplaced: list[int] = []
    opened: list[tuple[str, int]] = []
    grad_mode: list[int] = []
    for position, (op, entry) in enumerate(zip(sample.ops, entries_of(sample), strict=True)):
        name = entry.name
        if name in PAIRS:
            opened.append((name, position))
        elif name in CLOSERS:
            opener = CLOSERS[name]
            places = [place for place, (each, _) in enumerate(opened) if each == opener]
            if not places:
                misplaced.append(position)
                continue
            is_innermost = places[-1] == len(opened) - 1
            _, start = opened.pop(places[-1])
            # All but vmap's are told what they close.
            told = () if opener == VMAP else (Ref(len(sample.inputs) + start),)
            if not is_innermost or op.args != told or op.kwargs:
                misplaced.append(position)
            found.append(Region(start, position, is_closed=opener == VMAP))
        elif name == GRAD_MODE:
            if grad_mode:
                found.append(Region(grad_mode.pop(), position, is_closed=False))
            else:
                grad_mode.append(position)
    left_open = (*(position for _, position in opened), *grad_mode)
    return Pairing(tuple(found), tuple(misplaced), left_open)
