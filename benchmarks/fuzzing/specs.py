"""Calls of operators as plain data: what they are made of, and how they are made wrong.

A tensor is a `Tensor` (dtype, shape, what fills it, how it lies in memory); everything else stands
for itself. So a call can be written down in a line, mutated by chance, and made again.
"""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
COMPLEX = ("complex64", "complex128")
FILLS = ("small", "normal", "ones", "zeros", "negative", "huge", "least", "nan", "count")
"""What fills a tensor: `small` are integers in [0, 3), `least` the dtype's smallest value."""

LAYOUTS = ("plain", "strided", "expanded", "transposed")
MAX_ELEMENTS = 20_000
HUGE_SIZES = (2**31, 2**32 + 1, 2**40, 2**62)
"""Sizes beside a size of zero, where they take no memory."""

TEXTS = (
    "none", "sum", "mean", "constant", "reflect", "replicate", "circular", "bilinear", "tanh",
    "nearest", "bicubic", "area", "fro", "nuc", "floor", "trunc", "ij", "xy", "linear", "higher",
    "lower", "amax", "prod", "same", "valid", "left", "", "a,b->", "ii", "\0",
)  # fmt: skip
MEMORY_FORMATS = ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
EDGES = (0, 1, -1, 2, 3, 5, -2, 7, 64, 1000, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63))
FLOAT_EDGES = (0.0, -1.0, 1.0, 0.5, 1e-30, 1e30, 1e308, float("inf"), float("-inf"), float("nan"))


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An operand. `data` holds the elements themselves where `fill` is "data"."""

    dtype: str
    shape: tuple[int, ...]
    fill: str = "normal"
    layout: str = "plain"
    data: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        text = f"{self.dtype}{list(self.shape)}:{self.fill}"
        if self.fill == "data":
            text += str(list(self.data[:8]))
        return text + ("" if self.layout == "plain" else f":{self.layout}")


@dataclasses.dataclass(frozen=True)
class Named:
    """A constant of the framework: `kind` is dtype, layout, memory_format, device or place."""

    kind: str
    name: str

    def __repr__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of an operator."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        parts = [repr(arg) for arg in self.args]
        parts += [f"{name}={arg!r}" for name, arg in self.kwargs.items()]
        return f"{self.name}({', '.join(parts)})"[:1500]


def to_json(value: Any) -> Any:
    """Return plain JSON for an argument."""
    if isinstance(value, Tensor):
        return {"t": [value.dtype, list(value.shape), value.fill, value.layout, list(value.data)]}
    if isinstance(value, Named):
        return {"n": [value.kind, value.name]}
    if isinstance(value, complex):
        return {"c": [value.real, value.imag]}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, tuple):
        return {"u": [to_json(item) for item in value]}
    return value


def from_json(value: Any) -> Any:
    """Return the argument that `to_json` wrote."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if isinstance(value, dict):
        kind, content = next(iter(value.items()))
        if kind == "t":
            dtype, shape, fill, layout, data = content
            return Tensor(dtype, tuple(shape), fill, layout, tuple(data))
        if kind == "n":
            return Named(*content)
        if kind == "c":
            return complex(*content)
        return tuple(from_json(item) for item in content)
    return value


def write_call(call: Call) -> str:
    """Return one line of JSON."""
    kwargs = {name: to_json(arg) for name, arg in call.kwargs.items()}
    return json.dumps([call.name, [to_json(arg) for arg in call.args], kwargs])


def read_call(line: str) -> Call:
    """Return the call that `write_call` wrote."""
    name, args, kwargs = json.loads(line)
    return Call(name, tuple(map(from_json, args)), {k: from_json(v) for k, v in kwargs.items()})


class Mutator:
    """Makes calls wrong by chance: shapes, dtypes, elements, layouts, numbers, lists, text.

    `keywords` are arguments that may be added, `parameters` names of the positions of a call, under
    which arguments may be passed too.
    """

    def __init__(
        self,
        chance: random.Random,
        keywords: dict[str, Any] | None = None,
        layouts: tuple[str, ...] = LAYOUTS,
        parameters: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        self.chance = chance
        self.keywords = keywords or {}
        self.layouts = layouts
        self.parameters = parameters

    def mutate(self, call: Call, others: list[Call]) -> Call:
        """Return `call` with none to five changes; `others` are calls to borrow arguments of."""
        args, kwargs = list(call.args), dict(call.kwargs)
        for _ in range(self.chance.choice((0, 1, 1, 1, 2, 2, 3, 5))):
            what = self.chance.random()
            places: list[tuple[Any, Any]] = [(args, i) for i in range(len(args))]
            places += [(kwargs, name) for name in kwargs]
            if not places or what < 0.03:
                self._add_keyword(kwargs)
                continue
            holder, key = self.chance.choice(places)
            if what < 0.08 and len(places) > 1:
                other, other_key = self.chance.choice(places)
                holder[key], other[other_key] = other[other_key], holder[key]
            elif what < 0.12 and len(places) > 1:
                other, other_key = self.chance.choice(places)
                holder[key] = other[other_key]
            elif what < 0.15 and others:
                borrowed = self.chance.choice(others)
                values = [*borrowed.args, *borrowed.kwargs.values()]
                if values:
                    holder[key] = self.chance.choice(values)
            elif what < 0.17:
                if isinstance(holder, dict):
                    del holder[key]
                elif key == len(args) - 1:
                    args.pop()
            else:
                holder[key] = self.value(holder[key])
        if self.parameters and args and self.chance.random() < 0.1:
            self._name_arguments(args, kwargs)
        return Call(call.name, tuple(args), kwargs)

    def lay_out(self, call: Call, layouts: tuple[str, ...]) -> Call:
        """Return `call` with about half of its tensors in one of `layouts`, drawn for each."""

        def drawn(value: Any) -> Any:
            if isinstance(value, Tensor) and self.chance.random() < 0.5:
                return dataclasses.replace(value, layout=self.chance.choice(layouts))
            if isinstance(value, list | tuple):
                return type(value)(map(drawn, value))
            return value

        kwargs = {name: drawn(value) for name, value in call.kwargs.items()}
        return Call(call.name, tuple(map(drawn, call.args)), kwargs)

    def _name_arguments(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Pass the last arguments by keyword."""
        names = self.chance.choice(self.parameters)
        begin = self.chance.randrange(len(args))
        if len(args) <= len(names) and not set(names[begin : len(args)]) & set(kwargs):
            kwargs |= zip(names[begin:], args[begin:], strict=False)
            del args[begin:]

    def _add_keyword(self, kwargs: dict[str, Any]) -> None:
        if self.keywords:
            name = self.chance.choice(sorted(self.keywords))
            kwargs[name] = self.keywords[name]
            if self.chance.random() < 0.5:
                kwargs[name] = self.value(kwargs[name])

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return another value of the same or, seldom, of another kind."""
        chance = self.chance
        if chance.random() < 0.04:
            return chance.choice(
                (
                    None,
                    0,
                    -1,
                    True,
                    1.5,
                    Tensor("float32", (2, 3)),
                    Tensor("int64", (3,), "huge"),
                    Tensor("int64", (), chance.choice(FILLS)),
                    Tensor("float64", (), chance.choice(FILLS)),
                    2j,
                    [],
                )
            )
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            what = chance.random()
            if what < 0.6:  # near, and as an axis or a window may be
                return value + chance.choice((-1, 1, 2)) if what < 0.3 else chance.randint(-6, 9)
            return chance.choice(EDGES)
        if isinstance(value, float):
            return chance.choice(FLOAT_EDGES)
        if isinstance(value, list | tuple):
            return self._sequence(value, depth)
        if value is None:
            return chance.choice((None, 0, 1, -1, self.tensor(Tensor("float32", (2, 3)))))
        if isinstance(value, Named) and value.kind == "dtype":
            return Named("dtype", chance.choice((*FLOATS, *INTEGERS, *COMPLEX)))
        if isinstance(value, Named) and value.kind == "memory_format":
            return Named("memory_format", chance.choice(MEMORY_FORMATS))
        if isinstance(value, str):
            return self._text(value) if chance.random() < 0.5 else chance.choice(TEXTS)
        return value

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> Any:
        items = list(value)
        what = self.chance.random()
        if what < 0.2 and items:
            items.pop(self.chance.randrange(len(items)))
        elif what < 0.4 and len(items) < 12:
            items.insert(
                self.chance.randrange(len(items) + 1),
                self.chance.choice(items) if items else self.chance.choice(EDGES),
            )
        elif what < 0.45:
            items = []
        elif items and depth < 3:
            for _ in range(self.chance.choice((1, 1, 2))):
                at = self.chance.randrange(len(items))
                items[at] = self.value(items[at], depth + 1)
        return type(value)(items)

    def _text(self, value: str) -> str:
        """Return a text with a character more, less or another, as equations and modes may have."""
        letters = list(value)
        at = self.chance.randrange(len(letters) + 1)
        letters[at : at + self.chance.choice((0, 1, 1))] = self.chance.choice(
            ("", *(value or "a"), *"abzA.,> 0\0", "...", "->")
        )
        return "".join(letters)

    def tensor(self, value: Tensor) -> Tensor:
        """Return a tensor that differs in shape, dtype, elements or layout."""
        what = self.chance.random()
        if what < 0.5:
            return self._reshaped(value)
        if what < 0.65:
            dtype = self.chance.choice((*FLOATS, *INTEGERS, *INTEGERS, *COMPLEX))
            fill = "small" if value.fill == "data" else value.fill
            return dataclasses.replace(value, dtype=dtype, fill=fill, data=())
        if what < 0.9:
            if value.fill == "data" and value.data and self.chance.random() < 0.5:
                data = list(value.data)
                edges = EDGES if value.dtype in INTEGERS else FLOAT_EDGES
                data[self.chance.randrange(len(data))] = self.chance.choice(edges)
                return dataclasses.replace(value, data=tuple(data))
            return dataclasses.replace(value, fill=self.chance.choice(FILLS), data=())
        return dataclasses.replace(value, layout=self.chance.choice(self.layouts))

    def _reshaped(self, value: Tensor) -> Tensor:
        shape = list(value.shape)
        what = self.chance.random()
        if shape and what < 0.6:
            at = self.chance.randrange(len(shape))
            size = shape[at]
            shape[at] = max(0, self.chance.choice((0, 1, size - 1, size + 1, 2 * size, 17, 200)))
        elif what < 0.7 and shape:
            shape.pop(self.chance.randrange(len(shape)))
        elif what < 0.82:
            shape.insert(self.chance.randrange(len(shape) + 1), self.chance.choice((0, 1, 2, 5)))
        elif what < 0.88:
            shape = []
        elif what < 0.92:
            shape = [0]
        elif what < 0.95 and 0 in shape[:8]:
            shape[self.chance.randrange(len(shape))] = self.chance.choice(HUGE_SIZES)
        else:
            self.chance.shuffle(shape)
        size = 1
        for dim in shape:
            size *= dim
        if size > MAX_ELEMENTS or len(shape) > 8:
            return value
        fill = (
            value.fill if value.fill != "data" else ("small" if "int" in value.dtype else "normal")
        )
        return dataclasses.replace(value, shape=tuple(shape), fill=fill, data=())
