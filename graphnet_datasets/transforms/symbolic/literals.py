"""Integer arguments of operators that may be sizes.

Operators that are not in the table keep their literals: axes, indices, strides of convolutions and
operands of arithmetic are unrelated to sizes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias, cast

from ...operators import OperatorValues
from ...sample import Op
from ...sample.arguments import ListArg, Named, SliceArg
from ...sample.targets import base_name

Family: TypeAlias = Literal[
    "reshape", "expand", "create", "slice", "parts", "size", "constant", "repeat", "mean"
]
"""Most likely meaning of a literal of an operator.

`reshape`: sizes with as many elements as the operand. `expand`, `repeat`: sizes relative to the
operand. `create`: sizes of the result. `slice`: bounds along an axis. `parts`: sizes that add up to
the size of an axis. `size`: requested sizes (interpolation, transforms). `constant`: rarely a size,
such as a window or an amount of padding. `mean`: divisor of a sum along an axis.
"""


@dataclasses.dataclass(frozen=True)
class Places:
    """Positions of an operator's literals: a range of arguments, and keywords."""

    family: Family
    first: int
    last: int = 64
    keywords: tuple[str, ...] = ()

    def holds(self, position: int) -> bool:
        """Return whether literals of the argument at a position count."""
        return self.first <= position <= self.last


_TABLE = OperatorValues("literals")


def places_of(op: Op) -> Places | None:
    """Return the positions of literals that may be sizes, or None.

    >>> places_of(Op("torch.Tensor.view", ())).family, places_of(Op("torch.exp", ()))
    ('reshape', None)
    """
    text = _TABLE.get(base_name(op.target))
    places = None if text is None else _parse_places(text)
    if places is not None and op.target.startswith("torch.Tensor.") and places.first == 0:
        return None  # the first argument of a method is a tensor
    return places


@functools.cache
def _parse_places(text: str) -> Places:
    """Parse `family.first.last.keyword.keyword`."""
    family, first, last, *keywords = text.split(".")
    return Places(cast(Family, family), int(first), int(last), tuple(keywords))


def find_literals(op: Op) -> tuple[int, ...]:
    """Return the integers of an operator that may be sizes, in the order of `replace_literals`.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> find_literals(Op("torch.Tensor.view", (Ref(0), 2, -1, 64)))
    (2, 64)
    >>> double = Named("dtype", "float64")  # end of a paddle `arange`
    >>> find_literals(Op("paddle._C_ops.full", (ListArg((1,)), 32.0, double)))
    (1, 32)
    """
    numbers: list[int] = []

    def note(number: int) -> int:
        numbers.append(number)
        return number

    _map(op, note)
    return tuple(numbers)


def replace_literals(op: Op, numbers: Iterator[Any]) -> Op:
    """Return the operator with its literals replaced.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> replace_literals(Op("torch.zeros", (2, 3)), iter([Ref(0), 5])).args
    (Ref(index=0), 5)
    """
    return _map(op, lambda _: next(numbers))


def _is_bound(op: Op) -> bool:
    """Return whether an operator creates a number used as a bound of paddle's `arange`.

    Such bounds are tensors of one float64 element; sizes of other operators are integers.
    """
    if op.target != "paddle._C_ops.full" or len(op.args) < 3:
        return False
    shape, value, dtype = op.args[:3]
    return (
        shape == ListArg((1,))
        and isinstance(dtype, Named)
        and dtype.name == "float64"
        and isinstance(value, float)
        and value.is_integer()
        and value >= 2
    )


def _map(op: Op, change: Callable[[int], Any]) -> Op:
    places = places_of(op)
    if places is None:
        return op
    only_slices = base_name(op.target) in ("getitem", "setitem")

    def walk(arg: Any) -> Any:
        if type(arg) is int:
            return change(arg) if arg >= 1 and not only_slices else arg
        if isinstance(arg, tuple):
            return tuple(map(walk, arg))
        if isinstance(arg, ListArg):
            return ListArg(tuple(map(walk, arg.items)))
        if isinstance(arg, SliceArg):
            start, stop = (
                change(bound) if type(bound) is int and bound >= 1 else bound
                for bound in (arg.start, arg.stop)
            )
            return SliceArg(start, stop, arg.step)
        return arg

    def walk_at(at: int, arg: Any) -> Any:
        if at == 1 and _is_bound(op):
            changed = change(int(arg))
            return float(changed) if isinstance(changed, int) else changed
        return walk(arg) if places.holds(at) else arg

    return dataclasses.replace(
        op,
        args=tuple(walk_at(at, arg) for at, arg in enumerate(op.args)),
        kwargs=tuple(
            (name, walk(arg) if name in places.keywords else arg) for name, arg in op.kwargs
        ),
        results=None,
    )
