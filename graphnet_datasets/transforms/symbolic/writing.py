"""Construction of a sample with symbols from the results of probing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...sample import Constraint, Input, Op, Sample, Symbol, Value
from ...sample.arguments import Ref, map_refs
from ...sample.symbols import Dim
from .dimensions import Dimension
from .fitting import Fitter
from .literals import replace_literals
from .plans import Plan
from .probing import Found


def declare(sample: Sample, dimensions: Iterable[Dimension]) -> Sample:
    """Return the sample with symbols in the shapes of its inputs; operators are unchanged.

    >>> from graphnet_datasets.transforms.symbolic.dimensions import find_dimensions
    >>> image = Sample("example/image", "torch", "cv",
    ...     (Input("input", Value("float32", (1, 3, 8, 8))),), (), ())
    >>> declare(image, find_dimensions(image)).inputs[0].value.shape
    ('batch', 3, 'height', 'width')
    """
    shapes = {
        index: list(input_value.value.shape or ())
        for index, input_value in enumerate(sample.inputs)
    }
    symbols = {symbol.name: symbol for symbol in sample.symbols}
    for dimension in dimensions:
        for index, axis, more in dimension.places:
            shapes[index][axis] = f"{dimension.name} + {more}" if more else dimension.name
        symbols.setdefault(dimension.name, Symbol(dimension.name, dimension.hint))
    inputs = tuple(
        input_value
        if tuple(shapes[index]) == (input_value.value.shape or ())
        else dataclasses.replace(
            input_value, value=_with_shape(input_value.value, tuple(shapes[index]))
        )
        for index, input_value in enumerate(sample.inputs)
    )
    return dataclasses.replace(sample, inputs=inputs, symbols=tuple(symbols.values()))


def _with_shape(value: Value, shape: tuple[Dim, ...]) -> Value:
    """Return a value with another shape.

    Strides follow the shape if they belong to a tensor that is dense in some order of its axes;
    other strides are dropped.
    """
    if value.stride is None or value.shape is None:
        return dataclasses.replace(value, shape=shape)
    pairs = list(zip(value.shape, value.stride, range(len(shape)), strict=True))
    if any(not isinstance(part, int) for size, step, _ in pairs for part in (size, step)):
        return Value(value.dtype, shape)
    strides: list[Dim] = [0] * len(shape)
    step, text = 1, ""
    for size, stride, axis in sorted(pairs, key=lambda pair: (pair[1], pair[0])):
        if stride != step and size != 1:
            return Value(value.dtype, shape)
        strides[axis] = text or step
        step *= int(size)
        text = f"{text}*({shape[axis]})" if text else f"({shape[axis]})"
    return Value(value.dtype, shape, tuple(strides))


def write(sample: Sample, solution: Found, plans: dict[str, Plan]) -> Sample | tuple[int, str]:
    """Return a declared sample with expressions in the place of its literals.

    If a literal follows no expression over the symbols, return its position and the reason.
    """
    fitter = Fitter(solution.points)
    num_inputs = len(sample.inputs)
    places = {
        input_value.source_name: index
        for index, input_value in enumerate(sample.inputs)
        if input_value.role == "symbol"
    }
    rewritten: list[tuple[Dim, ...] | None] = []
    for position, choice in enumerate(solution.literals):
        dims = None if choice is None else tuple(map(fitter.fit, choice))
        if dims is not None and None in dims:
            return position, "a size that follows no expression over the symbols"
        rewritten.append(dims)  # type: ignore[arg-type]
    texts = dict.fromkeys(dim for dims in rewritten for dim in dims or () if isinstance(dim, str))
    added = [text for text in texts if text not in places]
    places.update({text: num_inputs + at for at, text in enumerate(added)})
    symbols = tuple(Input("symbol", Value("int64", ()), source_name=text) for text in added)

    def shift(ref: int) -> Ref:
        return Ref(ref if ref < num_inputs else ref + len(added))

    def moved(op: Op, dims: tuple[Dim, ...] | None) -> Op:
        op = dataclasses.replace(
            op, args=map_refs(op.args, shift), kwargs=map_refs(op.kwargs, shift)
        )
        if dims is None:
            return op
        return replace_literals(op, _references(dims, places))

    ops = tuple(
        dataclasses.replace(moved(op, dims), results=_results(op, solution, position, fitter))
        for position, (op, dims) in enumerate(zip(sample.ops, rewritten, strict=True))
    )
    return dataclasses.replace(
        sample,
        inputs=(*sample.inputs, *symbols),
        ops=ops,
        outputs=map_refs(sample.outputs, shift),
        constraints=(*sample.constraints, *_constraints(sample, plans)),
    )


def _references(dims: Sequence[Dim], places: dict[str, int]) -> Iterator[Any]:
    for dim in dims:
        yield Ref(places[dim]) if isinstance(dim, str) else dim


def _constraints(sample: Sample, plans: dict[str, Plan]) -> Iterator[Constraint]:
    for name, plan in plans.items():
        constraint = Constraint(f"Mod({name}, {plan.step})", "==", str(plan.hint % plan.step))
        if plan.step > 1 and constraint not in sample.constraints:
            yield constraint


def _results(op: Op, solution: Found, position: int, fitter: Fitter) -> tuple[Value, ...] | None:
    values = solution.values[position]
    if values is None:
        return None if op.results is None else tuple(Value(result.dtype) for result in op.results)
    return tuple(_value(tensors, fitter) for tensors in zip(*values, strict=False))


def _value(tensors: Sequence[Value], fitter: Fitter) -> Value:
    """Return the shape over the symbols of a tensor that was seen at all points."""
    dtype = tensors[0].dtype
    shape = _fit_all([tensor.shape for tensor in tensors], fitter)
    if shape is None:
        return Value(dtype)
    strides = [tensor.stride for tensor in tensors]
    if all(stride is None for stride in strides) or None in strides:
        return Value(dtype, shape)
    return Value(dtype, shape, _fit_all(strides, fitter))


def _fit_all(rows: Sequence[tuple[Dim, ...] | None], fitter: Fitter) -> tuple[Dim, ...] | None:
    if any(row is None for row in rows) or len({len(row or ()) for row in rows}) > 1:
        return None
    dims = [fitter.fit(column) for column in zip(*rows, strict=True)]  # type: ignore[arg-type]
    return None if None in dims else tuple(dims)  # type: ignore[arg-type]
