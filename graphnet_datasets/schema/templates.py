"""Arguments of an operator as columns: a JSON template with holes, and operands that fill them.

`conv2d(%12, %3, None, (1, 1), groups=2)` has the operands `[12, 3]`, the template
`[{}, {}, null, {"tuple": [1, 1]}]` and the keyword template `{"groups": 2}`. The operands are the
edges of the graph, as integers. Templates repeat across layers and models, so that they take almost
no space on disk and are parsed once.

| in Python | in JSON |
|---|---|
| reference to a value | `{}`, filled with the next operand, left to right, keywords last |
| None, bool, int, float, str | themselves; nan, inf, -inf as `{"float": "nan"}` … |
| list, tuple | `[…]`, `{"tuple": […]}` |
| complex, slice | `{"complex": [real, imaginary]}`, `{"slice": [start, stop, step]}` |
| dictionary, `...` | `{"dict": {"key": …}}`, `{"ellipsis": true}` |
| named constants | `{"dtype": "float32"}`, `{"device": "cpu"}` |
| body of `cond`, `while_loop`, `scan` | `{"graph": [inputs, [operator, …], [operands, output]]}` |

A body numbers its own values, so its operands are separate: an operator of a body is
`[target, operands, arguments, keywords, module]`.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..errors import SchemaError
from ..sample import Op
from ..sample.arguments import (
    MAX_BODY_DEPTH,
    MAX_NESTING,
    NAMED_KINDS,
    Arg,
    DictArg,
    Graph,
    ListArg,
    Named,
    Ref,
    SliceArg,
)

MAX_CACHED_LENGTH = 200
"""Limit in characters; longer templates (tables of literals) rarely repeat and are not cached."""

NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

_to_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Template(NamedTuple):
    """A parsed template: arguments with `HOLE` in place of each operand.

    `keywords` equals None for positional arguments. `is_nested` is true if there are holes below
    the top level; `places` are the positions of those at the top level.
    """

    items: tuple[Any, ...]
    keywords: tuple[str, ...] | None
    num_holes: int
    is_nested: bool
    places: tuple[int, ...]


class _Hole:
    __slots__ = ()


HOLE = _Hole()

_REFS = {index: Ref(index) for index in range(4096)}
"""Shared reference objects, sufficient for most graphs."""


def encode_args(args: tuple[Arg, ...], operands: list[int]) -> str:
    """Return the template of positional arguments, and append their operands to `operands`.

    >>> operands = []
    >>> encode_args((Ref(12), None, (1, 1)), operands), operands
    ('[{},null,{"tuple":[1,1]}]', [12])
    """
    return _to_json([_encode(arg, operands) for arg in args])


def encode_kwargs(kwargs: tuple[tuple[str, Arg], ...], operands: list[int]) -> str:
    """Return the template of keyword arguments, and append their operands to `operands`."""
    return _to_json({name: _encode(arg, operands) for name, arg in kwargs}) if kwargs else "{}"


def decode_args(text: str, operands: Iterator[int]) -> tuple[Arg, ...]:
    """Return the positional arguments of a template, filled with the next operands.

    Raises:
        SchemaError: the string is not a template.
        StopIteration: there are fewer operands than holes.

    >>> decode_args('[{},{"slice":[null,2,null]}]', iter([7]))
    (Ref(index=7), SliceArg(start=None, stop=2, step=None))
    """
    template = _parse(text, list)
    return _fill_template(template, operands)


def decode_plain(text: str, operands: list[int]) -> tuple[Arg, ...] | None:
    """Return the positional arguments of a template whose holes are all at the top level.

    Returns None for other templates, which are rare, and if the number of operands differs.

    Raises:
        SchemaError: the string is not a template.

    >>> decode_plain("[{},2]", [7]), decode_plain("[{},2]", [7, 8])
    ((Ref(index=7), 2), None)
    """
    template = _parse(text, list)
    if template.is_nested or template.num_holes != len(operands):
        return None
    filled: list[Any] = [*template.items]
    for place, index in zip(template.places, operands, strict=True):
        filled[place] = _REFS.get(index) or Ref(index)
    return tuple(filled)


def decode_kwargs(text: str, operands: Iterator[int]) -> tuple[tuple[str, Arg], ...]:
    """Return the keyword arguments of a template, filled with the next operands.

    Raises:
        SchemaError: the string is not a template.
        StopIteration: there are fewer operands than holes.
    """
    if text == "{}":
        return ()
    template = _parse(text, dict)
    return tuple(zip(template.keywords or (), _fill_template(template, operands), strict=True))


def _encode(arg: Any, operands: list[int]) -> Any:
    kind = type(arg)
    if kind is Ref:
        operands.append(arg.index)
        return {}
    if arg is None or kind in (bool, int, str):
        return arg
    if kind is float:
        return arg if math.isfinite(arg) else {"float": str(arg)}
    if kind is tuple:
        return {"tuple": [_encode(item, operands) for item in arg]}
    if kind is ListArg:
        return [_encode(item, operands) for item in arg.items]
    if kind is Named:
        return {arg.kind: arg.name}
    if kind is SliceArg:
        return {"slice": [_encode(part, operands) for part in (arg.start, arg.stop, arg.step)]}
    if kind is DictArg:
        return {"dict": {key: _encode(item, operands) for key, item in arg.items}}
    if kind is complex:
        return {"complex": [_encode(part, operands) for part in (arg.real, arg.imag)]}
    if arg is Ellipsis:
        return {"ellipsis": True}
    if kind is Graph:
        return {"graph": _encode_body(arg)}
    raise SchemaError(
        f"An argument of type `{kind.__name__}` cannot be stored in a row. Use the types of "
        "`sample.arguments`."
    )


def _encode_body(body: Graph) -> list[Any]:
    ops = []
    for op in body.ops:
        operands: list[int] = []
        args = [_encode(arg, operands) for arg in op.args]
        kwargs = {name: _encode(arg, operands) for name, arg in op.kwargs}
        ops.append([op.target, operands, args, kwargs, op.module])
    operands = []
    output = _encode(body.outputs, operands)
    return [body.num_inputs, ops, [operands, output]]


def _decode_body(tree: Any, level: int) -> Graph:
    """Return a body from its JSON, which is inside of `level` other bodies."""
    if level >= MAX_BODY_DEPTH:
        raise SchemaError(
            f"An argument template nests bodies deeper than {MAX_BODY_DEPTH} levels. Write the row "
            "again."
        )
    try:
        num_inputs, rows, (operands, output) = tree
        _check_types((num_inputs, int), (rows, list))
        return Graph(
            num_inputs,
            tuple([_decode_body_op(row, level) for row in rows]),
            _fill_body([output], operands, level)[0],
        )
    except SchemaError:
        raise
    except (TypeError, ValueError, StopIteration) as error:
        raise SchemaError(
            "An argument template contains a body that is not `[inputs, operators, [operands, "
            "output]]`. Write the row again."
        ) from error


def _decode_body_op(row: Any, level: int) -> Op:
    target, operands, args, kwargs, module = row
    _check_types((target, str), (args, list), (kwargs, dict), (module, str))
    filled = _fill_body([*args, *kwargs.values()], operands, level)
    keywords = zip(kwargs, filled[len(args) :], strict=True)
    return Op(target, tuple(filled[: len(args)]), tuple(keywords), None, module)


def _fill_body(trees: list[Any], operands: Any, level: int) -> list[Any]:
    _check_types((operands, list), *((index, int) for index in operands))
    rest = iter(operands)
    filled = [_fill(_decode(tree, 0, level + 1), rest) for tree in trees]
    if next(rest, None) is not None:
        raise ValueError("A body has more operands than holes.")
    return filled


def _check_types(*pairs: tuple[Any, type]) -> None:
    for value, kind in pairs:
        if type(value) is not kind:
            raise TypeError(f"`{type(value).__name__}` instead of `{kind.__name__}`")


def _parse(text: str, kind: type) -> Template:
    parse = _parse_cached if len(text) <= MAX_CACHED_LENGTH else _parse_template
    return parse(text, kind)


def _parse_template(text: str, kind: type) -> Template:
    try:
        tree = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise SchemaError(
            f"The argument template `{text[:80]}` is not JSON: {error}. Write the row again."
        ) from error
    if type(tree) is not kind:
        raise SchemaError(
            f"The argument template `{text[:80]}` is not a JSON "
            f"{'array' if kind is list else 'object'}."
        )
    children = tree if kind is list else tree.values()
    items = tuple(_decode(child, 0) for child in children)
    num_holes = sum(_count_holes(item) for item in items)
    places = tuple(place for place, item in enumerate(items) if item is HOLE)
    keywords = tuple(tree) if kind is dict else None
    return Template(items, keywords, num_holes, num_holes != len(places), places)


_parse_cached = functools.lru_cache(maxsize=16_384)(_parse_template)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f'`{name}` is written as {{"float": "{name.lower()}"}}')


def _decode(tree: Any, depth: int, level: int = 0) -> Any:
    kind = type(tree)
    if kind is not list and kind is not dict:
        return tree
    # One level more than in a sample, because an object may represent a leaf.
    if depth > MAX_NESTING:
        raise SchemaError(
            f"An argument template is nested more than {MAX_NESTING} levels deep. "
            "Write the row again."
        )
    if kind is list:
        return ListArg(tuple(_decode(item, depth + 1) for item in tree))
    if not tree:
        return HOLE
    if len(tree) == 1:
        ((tag, body),) = tree.items()
        if tag in NAMED_KINDS and type(body) is str:
            return Named(tag, body)
        if tag == "tuple" and type(body) is list:
            return tuple(_decode(item, depth + 1) for item in body)
        if tag == "slice" and type(body) is list and len(body) == 3:
            return SliceArg(*(_decode(part, depth + 1) for part in body))
        if tag == "dict" and type(body) is dict:
            return DictArg(tuple((key, _decode(item, depth + 1)) for key, item in body.items()))
        if tag == "float" and type(body) is str and body in NON_FINITE:
            return NON_FINITE[body]
        if tag == "complex" and type(body) is list and len(body) == 2:
            real, imaginary = (_decode(part, depth + 1) for part in body)
            if type(real) is float and type(imaginary) is float:
                return complex(real, imaginary)
        if tag == "ellipsis" and body is True:
            return ...
        if tag == "graph" and depth == 0:
            return _decode_body(body, level)
    raise SchemaError(
        f"An argument template contains `{json.dumps(tree)[:80]}`, which is not a "
        "template. Write the row again."
    )


def _children(arg: Any) -> tuple[Any, ...]:
    kind = type(arg)
    if kind is tuple:
        return arg
    if kind is ListArg:
        return arg.items
    if kind is DictArg:
        return tuple(item for _, item in arg.items)
    if kind is SliceArg:
        return (arg.start, arg.stop, arg.step)
    return ()


def _count_holes(arg: Any) -> int:
    return 1 if arg is HOLE else sum(_count_holes(child) for child in _children(arg))


def _fill_template(template: Template, operands: Iterator[int]) -> tuple[Any, ...]:
    if not template.num_holes:
        return template.items
    if template.is_nested:
        return tuple([_fill(item, operands) for item in template.items])
    return tuple([_fill(item, operands) if item is HOLE else item for item in template.items])


def _fill(arg: Any, operands: Iterator[int]) -> Any:
    if arg is HOLE:
        index = next(operands)
        return _REFS.get(index) or Ref(index)
    kind = type(arg)
    if kind is tuple:
        return tuple([_fill(item, operands) for item in arg])
    if kind is ListArg:
        return ListArg(tuple([_fill(item, operands) for item in arg.items]))
    if kind is DictArg:
        return DictArg(tuple([(key, _fill(item, operands)) for key, item in arg.items]))
    if kind is SliceArg:
        return SliceArg(
            _fill(arg.start, operands), _fill(arg.stop, operands), _fill(arg.step, operands)
        )
    return arg
