"""Regions of a graph in which its framework computes in another mode (autocast, no grad, vmap).

One operator opens a region and another closes it; both take and give nothing of the graph's data.
"""

from __future__ import annotations

import dataclasses

from ..frameworks.torch.building.entries import entry_of
from ..frameworks.torch.operators.python import PAIRS
from ..sample import Sample

_GRAD_MODE = "torch._C._set_grad_enabled"
_VMAP = "torch._functorch.predispatch._vmap_increment_nesting"


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """The operators from `opens` to `closes`, both included.

    The values of one that is `is_closed` (vmap) have dimensions that are not theirs outside of it,
    so that it cannot be cut.
    """

    opens: int
    closes: int
    is_closed: bool

    def holds(self, position: int) -> bool:
        """Tell whether an operator is in it, or opens or closes it."""
        return self.opens <= position <= self.closes


def find_regions(sample: Sample) -> tuple[Region, ...]:
    """Return the regions of a sample, in the order in which they close.

    Switches of the grad mode come in pairs, of which the second puts back what was before.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Named, Ref
    >>> autocast = "torch.amp.autocast_mode"
    >>> sample = Sample("example/autocast", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),),
    ...     (Op(f"{autocast}._enter_autocast", ("cpu", Named("dtype", "bfloat16"), True, None)),
    ...      Op("torch.exp", (Ref(0),)), Op(f"{autocast}._exit_autocast", (Ref(1),))), Ref(2))
    >>> find_regions(sample)
    (Region(opens=0, closes=2, is_closed=False),)
    """
    if sample.framework != "torch":  # no other framework's table has operators that open one
        return ()
    found: list[Region] = []
    opened: dict[str, list[int]] = {}
    closers = {closer: opener for opener, closer in PAIRS.items()}
    grad_mode: int | None = None
    for position, op in enumerate(sample.ops):
        name = entry_of(sample, op).name
        if name in PAIRS:
            opened.setdefault(name, []).append(position)
        elif name in closers and opened.get(closers[name]):
            opener = closers[name]
            found.append(Region(opened[opener].pop(), position, opener == _VMAP))
        elif name == _GRAD_MODE:
            if grad_mode is not None:
                found.append(Region(grad_mode, position, False))
            grad_mode = position if grad_mode is None else None
    return tuple(found)
