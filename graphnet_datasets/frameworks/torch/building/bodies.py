"""Calls of operators with bodies: branches and loops."""

from __future__ import annotations

import dataclasses

import torch

from ....errors import MaterializeError, TimeLimitError
from ....sample import Op
from ....sample.arguments import Arg, Graph, ListArg, Ref
from ...deadline import Deadline
from ..operators.table import HIGHER_ORDER_PREFIX

MAX_ITERATIONS = 1_000_000
"""Iterations of a loop in the caller's process."""

LOOP_CHECKS_NAME = "loop_checks"
"""Prefix of the names of submodules that bound the work of loops."""

_FORMS = {
    "cond": "a condition, two bodies and a tuple of operands",
    "while_loop": "two bodies, a tuple of carried values and a tuple of other operands",
    "scan": "a body, a list of carried values, a list of tensors to scan and other operands",
}
_NUM_BODIES = {"cond": 2, "while_loop": 2, "scan": 1}
_GROUPS = {
    "cond": ("others",),
    "while_loop": ("carried", "others"),
    "scan": ("carried", "scanned", "others"),
}


@dataclasses.dataclass(frozen=True)
class BodyCall:
    """A call of an operator with bodies.

    Each body takes the operands `carried`, `scanned` and `others`, in this order. A loop passes the
    results of an iteration to the next one in place of `carried`. It passes the elements of
    `scanned` along their first axis.
    """

    name: str
    carried: tuple[Arg, ...] = ()
    scanned: tuple[Arg, ...] = ()
    others: tuple[Arg, ...] = ()

    @property
    def operands(self) -> tuple[Arg, ...]:
        """All operands, in the order in which a body takes them."""
        return self.carried + self.scanned + self.others

    @property
    def is_loop(self) -> bool:
        """True if a body may run several times."""
        return self.name != "cond"


def has_bodies(target: str) -> bool:
    """Return whether an operator takes bodies.

    >>> has_bodies("torch.ops.higher_order.cond"), has_bodies("torch.relu")
    (True, False)
    """
    return target.startswith(HIGHER_ORDER_PREFIX)


def read_body_call(op: Op) -> BodyCall:
    """Return the operands of an operator with bodies.

    Raises:
        MaterializeError: If the arguments have another form, or a body takes another number of
            operands.

    >>> relu = Graph(1, (Op("torch.relu", (Ref(0),)),), (Ref(1),))
    >>> op = Op("torch.ops.higher_order.cond", (Ref(0), relu, relu, (Ref(1),)))
    >>> read_body_call(op).operands
    (Ref(index=1),)
    """
    name = op.target.removeprefix(HIGHER_ORDER_PREFIX)
    first = 1 if name == "cond" else 0
    after = first + _NUM_BODIES[name]
    bodies = [arg for arg in op.args[first:after] if type(arg) is Graph]
    groups = [_items(arg) for arg in op.args[after:]]
    names = _GROUPS[name]
    if len(bodies) != _NUM_BODIES[name] or len(groups) != len(names) or None in groups:
        raise MaterializeError(f"Expected {_FORMS[name]}.")
    call = BodyCall(
        name, **{group: items or () for group, items in zip(names, groups, strict=True)}
    )
    for body in bodies:
        if body.num_inputs != len(call.operands):
            raise MaterializeError(
                f"A body takes {body.num_inputs} operands, but the call has {len(call.operands)}."
            )
    return call


def _items(arg: Arg) -> tuple[Arg, ...] | None:
    items = arg.items if isinstance(arg, ListArg) else arg
    is_plain = isinstance(items, tuple) and all(
        type(item) in (Ref, int, float, bool) for item in items
    )
    return items if is_plain else None  # pyright: ignore[reportReturnType] - checked above


class LoopChecks(torch.nn.Module):
    """Bound on the iterations and the time of a loop.

    The graph calls it before the loop and in each iteration.

    Raises:
        TimeLimitError: If the loop exceeds `MAX_ITERATIONS` or the time limit.
    """

    def __init__(self, place: str, time_limit_s: float | None) -> None:
        super().__init__()
        self._place, self._time_limit_s = place, time_limit_s
        self._deadline = Deadline(time_limit_s)
        self._count = 0

    def forward(self, is_start: bool) -> None:
        """Start the count of a loop, or count an iteration."""
        if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
            return
        if is_start:
            self._count, self._deadline = 0, Deadline(self._time_limit_s)
            return
        self._count += 1
        if self._count > MAX_ITERATIONS:
            raise TimeLimitError(
                f"{self._place} runs for more than {MAX_ITERATIONS:,} iterations. Skip the sample."
            )
        self._deadline.check(self._place)
