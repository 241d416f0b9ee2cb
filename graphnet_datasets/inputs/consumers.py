"""Index operands of operators, and operators whose results depend on integer elements.

Frameworks have the same families of operators, with different names and argument orders. Knowledge
of one framework is in its input rules (`rules`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

from ..operators import OperatorNames
from ..sample import Op
from ..sample.arguments import Arg, ListArg, Ref
from ..sample.targets import base_name
from .rules import rules_of


@dataclasses.dataclass(frozen=True, slots=True)
class Indexing:
    """Positions of the indices, the indexed tensor and the axis among an operator's operands.

    Each operand is given by position and keyword. `axis` is an integer for operators that always
    index the same axis. `count` is the operand with the number of classes, for operators that have
    it instead of an indexed tensor.
    """

    indices: tuple[tuple[int, str], ...]
    table: tuple[int, str] | None = None
    axis: tuple[int, str] | int = 0
    count: tuple[int, str] | None = None


ANY_INDEX = OperatorNames("any_index")

MOVING = OperatorNames("moving")

EQUALITIES = OperatorNames("equality")
ORDERS = OperatorNames("ordering")

TO_FLOAT = OperatorNames("to_float")

SHAPE_GIVING = OperatorNames("shape_giving")

SHAPE_TAKING = OperatorNames("shape_taking")


ELEMENTLESS = OperatorNames("elementless")


def short_name(target: str) -> str:
    """Return the name of an operator without namespace, overload and in-place suffix.

    >>> short_name("torch.ops.aten.scatter_.src"), short_name("paddle._C_ops.add_")
    ('scatter', 'add')
    """
    name = base_name(target)
    return name if name.endswith("__") else name.rstrip("_") or name


def indexing_of(framework: str, op: Op) -> Indexing | None:
    """Return the index operands of an operator, or None if no operand is at a fixed position."""
    text = rules_of(framework).indexing(op)
    return None if text is None else _parse_indexing(text)


@functools.cache
def _parse_indexing(text: str) -> Indexing:
    """Parse `2.index+3.other/table:0.input/axis:1.dim`."""
    indices, *parts = text.split("/")
    places = dict(part.split(":") for part in parts)
    axis = places.get("axis", "0")
    return Indexing(
        tuple(map(parse_place, indices.split("+"))),
        parse_place(places["table"]) if "table" in places else None,
        parse_place(axis) if "." in axis else int(axis),
        parse_place(places["count"]) if "count" in places else None,
    )


def parse_place(text: str) -> tuple[int, str]:
    """Return the position and the keyword in `position.keyword`.

    >>> parse_place("1.boxes")
    (1, 'boxes')
    """
    position, _, keyword = text.partition(".")
    return int(position), keyword


def operand(op: Op, place: tuple[int, str]) -> Arg:
    """Return an operand by position or keyword, or None if it was not passed."""
    position, keyword = place
    if position < len(op.args):
        return op.args[position]
    return dict(op.kwargs).get(keyword)


def iterate_parts(arg: Arg) -> Iterator[Arg]:
    """Yield the items of a list or tuple, or any other argument itself."""
    if isinstance(arg, ListArg):
        yield from arg.items
    elif isinstance(arg, tuple):
        yield from arg
    else:
        yield arg


def ref_of(arg: Arg) -> int | None:
    """Return the value index of a `Ref`, or None for other arguments."""
    return arg.index if isinstance(arg, Ref) else None
