"""Calls that paddle's core does not survive: they end the process instead of raising.

The core reads as many positional arguments as it has names for, whether they were given or not, and
infers shapes of lists of values without a look at whether any of them is there.
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
    """Return the arguments of an operator of paddle's core as the function takes them: by position.

    Raises:
        MaterializeError: an argument is missing or has a name that the function does not know, or
            a list of absent values is among them.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> in_order(Op("paddle._C_ops.concat", (Ref(0),), (("axis", 1),)))
    (Ref(index=0), 1)
    >>> try:
    ...     in_order(Op("paddle._C_ops.concat"))
    ... except MaterializeError as error:
    ...     print(error)
    has 0 arguments where paddle's function takes 2: x, axis.
    """
    try:
        names = argument_names(op.target.removeprefix(CORE))
    except CaptureError as error:
        raise MaterializeError(f"has arguments of which paddle tells nothing: {error}") from error
    by_name = dict(op.kwargs)
    missing = names[len(op.args) :]
    given = len(op.args) + len(op.kwargs)
    if given != len(names) or set(by_name) != set(missing):
        unknown = sorted(set(by_name) - set(missing))
        raise MaterializeError(
            f"has {given} arguments where paddle's function takes {len(names)}: {', '.join(names)}."
            if given != len(names)
            else f"has the keyword `{unknown[0][:40]}`; left for keywords: {', '.join(missing)}."
        )
    arguments = (*op.args, *(by_name[name] for name in missing))
    check_lists(each.items if isinstance(each, ListArg) else each for each in arguments)
    return arguments


def check_lists(arguments: Iterable[Any]) -> None:
    """Refuse lists in which every value is absent.

    Raises:
        MaterializeError: there is such a list.

    >>> check_lists((None, [1, None], []))
    """
    for each in arguments:
        if isinstance(each, list | tuple) and each and all(item is None for item in each):
            raise MaterializeError("has a list of absent values as an argument.")
