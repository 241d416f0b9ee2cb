"""Arguments of operators as plain, frozen data.

None, bool, int, float, complex, str, `...` and tuple are used directly; this module has classes for
all other kinds of arguments. Arguments contain neither callables nor names of code.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias, Union

if TYPE_CHECKING:
    from .sample import Op

NAMED_KINDS = ("dtype", "device", "layout", "memory_format", "place")
MAX_NESTING = 32
MAX_TEXT_LENGTH = 10_000
MAX_BODY_DEPTH = 8
"""Maximum nesting of bodies, such as a loop in a branch."""
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

_NAMED = re.compile(r"[A-Za-z0-9_:.]{1,64}\Z")


@dataclasses.dataclass(frozen=True, slots=True)
class Ref:
    """A reference to value `index` of the sample."""

    index: int


@dataclasses.dataclass(frozen=True, slots=True)
class ListArg:
    """A Python list among the arguments, as opposed to a tuple, which indexes differently."""

    items: tuple[Arg, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class DictArg:
    """A dictionary with string keys, in order."""

    items: tuple[tuple[str, Arg], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SliceArg:
    """A slice whose parts are integers, references or None."""

    start: Arg
    stop: Arg
    step: Arg


@dataclasses.dataclass(frozen=True, slots=True)
class Named:
    """A named constant of the framework: `Named("dtype", "float32")`, `Named("device", "cpu")`."""

    kind: str
    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class Graph:
    """A body: a graph that an operator such as `cond` or `while_loop` calls.

    Values 0 to `num_inputs - 1` are the operands that the operator passes, followed by one value
    per operator, as in a sample. A body cannot refer to values of the graph around it. Its
    operators have no recorded results. A body is a positional argument, never part of another one.
    """

    num_inputs: int
    ops: tuple[Op, ...]
    outputs: Arg


Literal: TypeAlias = bool | int | float | complex | str | EllipsisType | None
# A Union of classes, because string annotations could not be resolved in other modules.
Arg: TypeAlias = Union[  # noqa: UP007
    Literal, Ref, ListArg, DictArg, SliceArg, Named, Graph, tuple["Arg", ...]
]
"""An argument of an operator, or the structure of a sample's outputs."""


def iterate_refs(arg: Any) -> Iterator[int]:
    """Yield the index of every reference in an argument structure, left to right."""
    pending = [arg]
    while pending:
        current = pending.pop()
        kind = type(current)
        if kind is Ref:
            yield current.index
        elif kind is tuple:
            pending.extend(current[::-1])
        elif kind is ListArg or kind is DictArg:
            pending.extend(current.items[::-1])
        elif kind is SliceArg:
            pending += (current.step, current.stop, current.start)


def iterate_leaves(outputs: Any) -> Iterator[Any]:
    """Yield the leaves of nested outputs, left to right, omitting None.

    >>> list(iterate_leaves((Ref(0), ListArg((None, 2)), DictArg((("mask", Ref(1)),)))))
    [Ref(index=0), 2, Ref(index=1)]
    """
    if isinstance(outputs, tuple | ListArg):
        for item in outputs if isinstance(outputs, tuple) else outputs.items:
            yield from iterate_leaves(item)
    elif isinstance(outputs, DictArg):
        for _, item in outputs.items:
            yield from iterate_leaves(item)
    elif outputs is not None:
        yield outputs


def map_refs(arg: Any, replace: Callable[[int], Any]) -> Any:
    """Replace each reference in `arg` by `replace(index)`.

    >>> map_refs((Ref(0), ListArg((Ref(1), 2))), lambda index: Ref(index + 10))
    (Ref(index=10), ListArg(items=(Ref(index=11), 2)))
    """
    if isinstance(arg, Ref):
        return replace(arg.index)
    if isinstance(arg, tuple):
        return tuple(map_refs(item, replace) for item in arg)
    if isinstance(arg, ListArg):
        return ListArg(tuple(map_refs(item, replace) for item in arg.items))
    if isinstance(arg, DictArg):
        return DictArg(tuple((key, map_refs(item, replace)) for key, item in arg.items))
    if isinstance(arg, SliceArg):
        return SliceArg(*(map_refs(part, replace) for part in (arg.start, arg.stop, arg.step)))
    return arg


def find_problem(arg: Any, num_values: int, depth: int = 0) -> str | None:
    """Return the problem of an argument that may use values 0 to `num_values - 1`, or None."""
    kind = type(arg)
    if arg is None or arg is Ellipsis or kind in (bool, float, complex):
        return None
    if kind is Ref:
        if type(arg.index) is int and 0 <= arg.index < num_values:
            return None
        return (
            f"uses value {arg.index}, which does not exist there (it may use 0 to {num_values - 1})"
        )
    if kind is int:
        return None if INT64_MIN <= arg <= INT64_MAX else "has an integer beyond 64 bits"
    if kind is str:
        if len(arg) <= MAX_TEXT_LENGTH:
            return None
        return f"has a string of more than {MAX_TEXT_LENGTH} characters"
    if kind is Named:
        if arg.kind in NAMED_KINDS and _NAMED.match(arg.name):
            return None
        return f"has the named constant {str(arg)[:80]} (accepted kinds: {', '.join(NAMED_KINDS)})"
    if depth >= MAX_NESTING:
        return f"nests arguments deeper than {MAX_NESTING} levels"
    children: tuple[Any, ...]
    if kind is tuple:
        children = arg
    elif kind is ListArg:
        children = arg.items
    elif kind is SliceArg:
        children = (arg.start, arg.stop, arg.step)
    elif kind is DictArg:
        keys = [key for key, _ in arg.items]
        if any(type(key) is not str for key in keys):
            return "has a dictionary with a key that is not a string"
        if len(set(keys)) != len(keys):
            return "has a dictionary with a repeated key"
        children = tuple(part for pair in arg.items for part in pair)
    else:
        return f"has an argument of type `{kind.__name__}`"
    for child in children:
        problem = find_problem(child, num_values, depth + 1)
        if problem:
            return problem
    return None
