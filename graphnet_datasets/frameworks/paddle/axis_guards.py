"""Checks that the axes in a Paddle call are valid for its first tensor."""

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
"""Names of arguments that hold an axis or a list of axes."""

_ADDING = {"stack": 1, "diag_embed": 1}
"""How many more axes the result has than the tensor, for operators whose axes index the result."""

_TAKES_SCALAR = OperatorNames("paddle_any_axis")

_COUNTED = words("decrease_axis decrease_axes none_axes begin_norm_axis")
"""Arguments that do not accept negative axes."""

_FREE = words("none_axes y_num_col_dims")
"""Arguments whose axes do not index the first tensor."""

_REPEATING = words("unsqueeze roll")
"""Operators that accept the same axis twice."""

_AUTOMATIC = {"cross": MAX_RANK}
"""The axis value that makes the operator choose an axis itself."""


def num_axes(name: str, args: Sequence[Any]) -> int | None:
    """Return the number of axes that a call can refer to, or None if it is unknown.

    >>> import paddle
    >>> num_axes("sum", [paddle.ones([2, 3])]), num_axes("stack", [[paddle.ones([2, 3])]])
    (2, 3)
    """
    first = args[0]
    tensor: Any = first[0] if isinstance(first, (list, tuple)) and first else first
    if not is_tensor(tensor):
        return None
    rank = len(tensor.shape)
    if name == "unsqueeze":  # new axes may follow the existing axes
        return rank + (len(args[1]) if isinstance(args[1], (list, tuple)) else 1)
    return max(1, rank) if name in _TAKES_SCALAR else rank + _ADDING.get(name, 0)


def check_axes(name: str, argument: str, arg: Any, count: int | None) -> None:
    """Raise if an axis is out of range or repeated.

    Raises:
        MaterializeError: an axis is outside `[-count, count)`, or occurs twice in a list.
    """
    if count is None or argument in _FREE:
        count = MAX_RANK
    if is_tensor(arg) and name != "unsqueeze" and math.prod(shape_of(arg) or ()) > count:
        raise MaterializeError(
            f"Expected at most {count} axes as `{argument}`, got a tensor of shape "
            f"{list(arg.shape)}."
        )
    lowest = 0 if argument in _COUNTED else -count
    seen = set()
    for axis in arg if isinstance(arg, (list, tuple)) else (arg,):
        if type(axis) is not int or axis == _AUTOMATIC.get(name):
            continue
        if not lowest <= axis < count:
            raise MaterializeError(
                f"Expected `{argument}` to be in [{lowest}, {count}), got {axis}."
            )
        if axis % count in seen and name not in _REPEATING:
            raise MaterializeError(f"Expected `{argument}` to contain axis {axis} only once.")
        seen.add(axis % count)
