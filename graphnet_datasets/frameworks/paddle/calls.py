"""Checks for calls that would crash Paddle's core instead of raising an exception.

The core reads a positional argument for every parameter, even if fewer were passed. Its shape
inference dereferences values in lists without checking that they exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import CaptureError, MaterializeError
from ...sample import Op
from ...sample.arguments import Arg, ListArg
from .operators import CORE
from .signatures import argument_names


def in_order(op: Op) -> tuple[Arg, ...]:
    """Return the arguments of a Paddle core operator in the positional order of its function.

    Raises:
        MaterializeError: an argument is missing, a keyword is unknown to the function, or a list
            contains only absent values.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> in_order(Op("paddle._C_ops.concat", (Ref(0),), (("axis", 1),)))
    (Ref(index=0), 1)
    >>> try:
    ...     in_order(Op("paddle._C_ops.concat"))
    ... except MaterializeError as error:
    ...     print(error)
    Expected 2 arguments (x, axis), got 0.
    """
    try:
        names = argument_names(op.target.removeprefix(CORE))
    except CaptureError as error:
        raise MaterializeError(f"The argument names cannot be read: {error}") from error
    by_name = dict(op.kwargs)
    missing = names[len(op.args) :]
    num_arguments = len(op.args) + len(op.kwargs)
    if num_arguments != len(names) or set(by_name) != set(missing):
        unknown = sorted(set(by_name) - set(missing))
        raise MaterializeError(
            f"Expected {len(names)} arguments ({', '.join(names)}), got {num_arguments}."
            if num_arguments != len(names)
            else f"Expected the keywords {', '.join(missing)}, got `{unknown[0][:40]}`."
        )
    arguments = (*op.args, *(by_name[name] for name in missing))
    check_lists(
        argument.items if isinstance(argument, ListArg) else argument for argument in arguments
    )
    return arguments


def check_lists(arguments: Iterable[Any]) -> None:
    """Raise if a list contains only absent values.

    Raises:
        MaterializeError: an argument is such a list.

    >>> check_lists((None, [1, None], []))
    """
    for argument in arguments:
        if (
            isinstance(argument, list | tuple)
            and argument
            and all(item is None for item in argument)
        ):
            raise MaterializeError("Expected lists of values, got a list in which all are None.")
