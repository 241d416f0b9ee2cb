"""Which axes a call of paddle may name: those that its tensor has, but for the operators here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import MaterializeError
from ...operators import OperatorNames
from .argument_kinds import MAX_RANK, is_tensor, shape_of
from .operator_names import words

AXES = words(
    """
    axis axes dim dims dim1 dim2 axis1 axis2 start_axis stop_axis decrease_axis decrease_axes
    none_axes perm begin_norm_axis x_num_col_dims y_num_col_dims
    """
)
"""Arguments that are an axis, or a list of axes."""

_ADDING = {"stack": 1, "diag_embed": 1}
"""How many axes more than the tensor the result has, whose axes are meant."""

_TAKES_SCALAR = OperatorNames("paddle_any_axis")

_COUNTED = words("decrease_axis decrease_axes none_axes begin_norm_axis")
"""Axes that are counted from the front alone."""

_FREE = words("none_axes y_num_col_dims")
"""Axes that are not those of the first tensor."""

_REPEATING = words("unsqueeze roll")
"""Operators that may be told an axis twice."""

_AUTOMATIC = {"cross": MAX_RANK}
"""The number that stands for the first axis that fits."""


def num_axes(name: str, args: Sequence[Any]) -> int | None:
    """Return how many axes there are to name in a call, None where that is unknown.

    >>> import paddle
    >>> num_axes("sum", [paddle.ones([2, 3])]), num_axes("stack", [[paddle.ones([2, 3])]])
    (2, 3)
    """
    first = args[0]
    tensor: Any = first[0] if isinstance(first, (list, tuple)) and first else first
    if not is_tensor(tensor):
        return None
    rank = len(tensor.shape)
    if name == "unsqueeze":  # each axis that it adds may stand behind the others
        return rank + (len(args[1]) if isinstance(args[1], (list, tuple)) else 1)
    return max(1, rank) if name in _TAKES_SCALAR else rank + _ADDING.get(name, 0)


def check_axes(name: str, argument: str, arg: Any, count: int | None) -> None:
    """Refuse axes that are not there, or that are named twice.

    Raises:
        MaterializeError: an axis is not in `[-count, count)`, or in a list twice.
    """
    if count is None or argument in _FREE:
        count = MAX_RANK
    if is_tensor(arg) and name != "unsqueeze" and math.prod(shape_of(arg) or ()) > count:
        raise MaterializeError(f"has a tensor of more than {count} axes as `{argument}`.")
    lowest = 0 if argument in _COUNTED else -count
    found = set()
    for axis in arg if isinstance(arg, (list, tuple)) else (arg,):
        if type(axis) is not int or axis == _AUTOMATIC.get(name):
            continue
        if not lowest <= axis < count:
            raise MaterializeError(f"has the axis {axis} as `{argument}`, of {count} axes.")
        if axis % count in found and name not in _REPEATING:
            raise MaterializeError(f"has the axis {axis} twice as `{argument}`.")
        found.add(axis % count)
