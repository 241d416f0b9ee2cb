"""Hypothesis strategies: random well-formed definitions with sizes and inputs."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from graphnet_datasets.errors import RangeInferenceError
from graphnet_datasets.tensor_comprehensions.language import Instance, check, instantiate

TYPES = ("float32", "float64", "int32", "int64", "uint8", "bool", "float16", "int8", "bfloat16")
FLOAT_TYPES = ("float32", "float64")
INTEGERS = ("int32", "int64", "uint8", "int8")
ROUNDING = {"float16": 2**-9, "bfloat16": 2**-6}
"""What two values may differ by, relatively, that a sum in another order rounded to neighbours."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A definition at sizes with its inputs and, for those updated in place, outputs."""

    source: str
    instance: Instance
    inputs: list[np.ndarray]
    outputs: dict[str, np.ndarray]


@dataclasses.dataclass
class Known:
    """A tensor that expressions may read."""

    name: str
    dtype: str
    rank: int


class Writer:
    """Draws the pieces of one statement."""

    def __init__(self, draw: st.DrawFn, known: list[Known], indices: list[str]) -> None:
        self.draw = draw
        self.known = known
        self.indices = indices

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def subscript(self, depth: int) -> str:
        name = self.pick(*self.indices) if self.indices else "0"
        other = self.pick(*self.indices) if self.indices else "1"
        form = self.draw(st.integers(0, 9))
        integers = [each for each in self.known if each.dtype in INTEGERS]
        if form == 9 and integers and depth > 0:
            return self.access(self.draw(st.sampled_from(integers)), depth - 1)
        forms = [name] * 5 + [f"{name} + {other}", f"{name} + 1", f"2 * {name}", f"{name} / 2"]
        return [*forms, f"{name} % 3"][form]

    def access(self, tensor: Known, depth: int) -> str:
        if not tensor.rank:
            return tensor.name
        return f"{tensor.name}({', '.join(self.subscript(depth) for _ in range(tensor.rank))})"

    def number(self, depth: int) -> str:
        """Return a numeric expression."""
        form = self.draw(st.integers(0, 11 if depth > 0 else 2))
        if form <= 1:
            return self.access(self.draw(st.sampled_from(self.known)), depth)
        if form == 2:
            return self.pick("2", "0.5", "3", "1.5e0", *self.indices)
        left, right = self.number(depth - 1), self.number(depth - 1)
        if form <= 6:
            return f"({left} {self.pick('+', '-', '*', '/', '%')} {right})"
        if form == 7:
            return f"{self.pick('min', 'max')}({left}, {right})"
        if form == 8:
            return f"({self.condition(depth - 1)} ? {left} : {right})"
        if form == 9:
            return f"{self.pick('fabs', 'floor', 'sqrt')}({left})"
        if form == 10:
            return f"fmax({left}, {right})"
        return f"-({left})"

    def condition(self, depth: int) -> str:
        form = self.draw(st.integers(0, 4 if depth > 0 else 1))
        if form <= 2:
            operator = self.pick("<", "<=", ">", ">=", "==", "!=")
            return f"{self.number(max(depth - 1, 0))} {operator} {self.number(max(depth - 1, 0))}"
        if form == 3:
            joint = self.pick("&&", "||")
            return f"({self.condition(depth - 1)} {joint} {self.condition(depth - 1)})"
        return f"!({self.condition(depth - 1)})"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a definition with one to three statements over one to three inputs."""
    sizes = {name: draw(st.integers(1, 6)) for name in "NMP"}
    known: list[Known] = []
    parameters = []
    shapes = []
    for number in range(draw(st.integers(1, 3))):
        rank = draw(st.integers(0, 3))
        names = [draw(st.sampled_from("NMP")) for _ in range(rank)]
        dtype = draw(st.sampled_from(TYPES))
        known.append(Known(f"A{number}", dtype, rank))
        dimensions = f"({', '.join(names)})" if names else ""
        parameters.append(f"{dtype}{dimensions} A{number}")
        shapes.append(tuple(sizes[name] for name in names))
    statements, returns = [], []
    for number in range(draw(st.integers(1, 3))):
        statement, output = _statement(draw, known, number)
        statements.append(statement)
        known.append(output)
        returns.append(output.name)
    kept = returns if draw(st.booleans()) else returns[-1:]
    source = f"def f({', '.join(parameters)}) -> ({', '.join(kept)}) {{ {' '.join(statements)} }}"
    return _case(draw, source, shapes)


@st.composite
def windows(draw: st.DrawFn) -> Case:
    """Draw a convolution, pooling or window: padded, strided, channels first or last, in place."""
    dtype = draw(st.sampled_from(("float32", "float64", "float16", "bfloat16", *INTEGERS)))
    places = "hw"[: draw(st.integers(1, 2))]
    sizes = {place: draw(st.integers(3, 7)) for place in places}
    taps = {place: draw(st.integers(1, 3)) for place in places}
    stride, dilation = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    guard = draw(st.sampled_from(("none", "causal", "both", "parity", "data")))
    is_last, weights = draw(st.booleans()), draw(st.sampled_from(("none", "depthwise", "dense")))
    batch, channels = draw(st.sampled_from((1, 2, 0))), draw(st.sampled_from((1, 3, 8, 16, 17, 40)))
    operator = draw(st.sampled_from(("+=!", "max=!", "min=!", "+=", "max=")))
    tensor, output = draw(st.sampled_from((("X", "O"), ("y0", "j1"), ("exp", "erf"))))

    subscripts, conditions, ranges = [], [], []
    for place in places:
        pad = 0 if guard == "none" else dilation * (taps[place] - 1)
        pad //= 1 if guard in ("none", "causal") else 2
        subscript = f"{stride} * {place} + {dilation} * {place}{place} - {pad}"
        subscripts.append(subscript)
        ranges.append(f"{place}{place} in 0:{taps[place]}")
        if guard != "none":
            extent = -(-sizes[place] // stride)
            ranges.append(f"{place} in 0:{extent}")
            conditions += [f"{subscript} >= 0", f"{subscript} < {sizes[place]}"]
    if guard == "parity":
        conditions.append("(h + hh) % 2 == 0")
    if guard == "data":
        conditions.append("S(h) > 0")

    def placed(spatial: list[str], channel: str) -> str:
        return ", ".join(["n", *spatial, channel] if is_last else ["n", channel, *spatial])

    channel = "d" if weights == "dense" else "c"
    value = f"{tensor}({placed(subscripts, 'c')})"
    if conditions:
        value = f"({' && '.join(conditions)} ? {value} : {dtype}(0))"
    parameters = [f"{dtype}({placed([name.upper() for name in places], 'C').upper()}) {tensor}"]
    shapes = [_shape(placed(list(places), "c"), {**sizes, "n": batch, "c": channels})]
    if weights != "none":
        steps = [f"{place}{place}" for place in places]
        named = [*steps, "c", "d"] if weights == "dense" else [*steps, "c"]
        value = f"{value} * Y({', '.join(named)})"
        extents = {f"{place}{place}": taps[place] for place in places} | {"c": channels, "d": 5}
        dimensions = [str(extents[name]) if name in steps else name.upper() for name in named]
        parameters.append(f"{dtype}({', '.join(dimensions)}) Y")
        shapes.append(tuple(extents[name] for name in named))
    if guard == "data":
        parameters.append(f"int32({sizes['h']}) S")
        shapes.append((sizes["h"],))
    if dtype in INTEGERS and draw(st.booleans()):
        value = f"int32({value})"
    left = f"{output}({placed(list(places), channel)})"
    source = (
        f"def f({', '.join(parameters)}) -> ({output}) "
        f"{{ {left} {operator} {value} where {', '.join(ranges)} }}"
    )
    return _case(draw, source, shapes)


def _shape(names: str, extents: dict[str, int]) -> tuple[int, ...]:
    return tuple(extents[name] for name in names.split(", "))


def _case(draw: st.DrawFn, source: str, shapes: list[tuple[int, ...]]) -> Case:
    """Return a definition at sizes with random inputs; reject one that the language excludes."""
    # The generator may draw what cannot be inferred or a temporary that nobody reads.
    try:
        definition = check(source)[0]
    except ValueError as error:
        assume("neither an output nor read" not in str(error) and "boolean" not in str(error))
        raise
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            instance = instantiate(definition, shapes, check_bounds=True)
        except RangeInferenceError:
            assume(False)
            raise
    assume(all(statement.num_points <= 3000 for statement in instance.statements))
    inputs = [_values(draw, each.dtype.name, each.shape) for each in instance.inputs]
    outputs = {
        each.name: _values(draw, each.dtype.name, each.shape)
        for each in instance.outputs
        if each.is_updated
    }
    return Case(source, instance, inputs, outputs)


def _statement(draw: st.DrawFn, known: list[Known], number: int) -> tuple[str, Known]:
    rank = draw(st.integers(0, 3))
    outer = ["i", "j", "k"][:rank]
    inner = ["r", "s"][: draw(st.integers(0, 2))]
    operator = draw(st.sampled_from(["+=!", "*=!", "min=!", "max=!"])) if inner else "="
    writer = Writer(draw, known, outer + inner)
    # A float type keeps the type of a sum out of the way; types have own tests.
    dtype = draw(st.sampled_from((*FLOAT_TYPES, "float16", "bfloat16")))
    value = f"{dtype}({writer.number(draw(st.integers(1, 3)))})"
    name = f"T{number}"
    form = draw(st.sampled_from(("plain", "plain", "scan", "scatter")))
    if form == "scan" and rank and not inner:
        value = _scan(draw, writer, name, outer, dtype, value)
    if form == "scatter" and rank:
        return _scatter(draw, writer, name, outer, inner, dtype), Known(name, dtype, rank)
    ranges = []
    for index in outer + inner:
        if draw(st.integers(0, 3)):
            begin = draw(st.integers(0, 2))
            ranges.append(f"{index} in {begin}:{begin + draw(st.integers(1, 4))}")
    where = f" where {', '.join(ranges)}" if ranges else ""
    left = f"{name}({', '.join(outer)})" if outer else name
    return f"{left} {operator} {value}{where}", Known(name, dtype, rank)


def _scan(
    draw: st.DrawFn, writer: Writer, name: str, outer: list[str], dtype: str, value: str
) -> str:
    """Return a value that also depends on earlier elements along one index."""
    index, sign = draw(st.sampled_from(outer)), draw(st.sampled_from("-+"))
    reads = []
    for lag in draw(st.sampled_from(((1,), (2,), (1, 3)))):
        places = [f"{place} {sign} {lag}" if place == index else place for place in outer]
        reads.append(f"{name}({', '.join(places)})")
    if draw(st.booleans()):
        edge = f"{index} {'>' if sign == '-' else '<'} {draw(st.integers(0, 2))}"
        reads[0] = f"({edge} ? {reads[0]} : {dtype}(1))"
    if draw(st.booleans()):
        value = f"{dtype}({writer.access(draw(st.sampled_from(writer.known)), 1)})"
        return f"{dtype}(max({value}, {reads[0]}))"
    return f"{dtype}({' + '.join([*reads, value])})"


def _scatter(
    draw: st.DrawFn, writer: Writer, name: str, outer: list[str], inner: list[str], dtype: str
) -> str:
    """Return statements that fill a tensor and then update elements at arbitrary subscripts."""
    extents = [draw(st.integers(1, 5)) for _ in outer]
    fill = ", ".join(f"{index} in 0:{size}" for index, size in zip(outer, extents, strict=True))
    begin = f"{name}({', '.join(outer)}) = {dtype}(1) where {fill}"
    places = [writer.subscript(1) for _ in outer]
    if all(place in writer.indices for place in places):
        places[0] += " + 0"
    operator = writer.pick("+=", "+=!", "max=", "min=!")
    read = writer.access(draw(st.sampled_from(writer.known)), 1)
    ranges = [f"{index} in 0:{draw(st.integers(1, 4))}" for index in (*outer, *inner)]
    update = f"{name}({', '.join(places)}) {operator} {dtype}({read})"
    return f"{begin} {update} where {', '.join(ranges)}"


def _values(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    if dtype in ("float16", "float32", "float64", "bfloat16"):
        # Multiples of a half keep sums and products exact, so that no order matters.
        name = "float32" if dtype == "bfloat16" else dtype
        return (generator.integers(-8, 9, shape) / 2).astype(name)
    low, high = (0, 2) if dtype == "bool" else (0 if dtype == "uint8" else -4, 5)
    return np.asarray(generator.integers(low, high, shape)).astype(dtype)
