"""Result shapes as expressions over a sample's symbols.

Paddle's tracer reports only that a dimension is unknown. Shapes are therefore inferred for several
sizes of the symbols. A dimension is recorded if a linear expression fits it and also holds at
another size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ...sample import Sample, Value
from ...sample.symbols import Dim
from .shapes import Limits, Results, propagate

_LIMITS = Limits(allow_unchecked_operators=True)  # the sample comes from the caller's own model
_STEPS = (1, 5)
"""Increments of each symbol's size: the first to fit its coefficient, the second to check the
fit."""


def with_symbolic_results(sample: Sample) -> Sample:
    """Return the sample with symbolic shapes for results whose shape was unknown.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Symbol
    >>> tensor = Input("input", Value("float32", ("s0", 3)))
    >>> flat = Op("paddle._C_ops.flatten", (Ref(0), 0, 1), (), (Value("float32", None),))
    >>> sample = Sample("example/flat", "paddle", "other", (tensor,), (flat,), Ref(1),
    ...     (Symbol("s0", 2),))
    >>> with_symbolic_results(sample).ops[0].results
    (Value(dtype='float32', shape=('3*s0',), stride=None),)
    """
    hints = sample.hints
    base = propagate(sample, hints, _LIMITS)
    moved = {
        name: propagate(sample, {**hints, name: size + _STEPS[0]}, _LIMITS)
        for name, size in hints.items()
    }
    check_sizes = {
        name: size + (position + 1) * _STEPS[1]
        for position, (name, size) in enumerate(hints.items())
    }
    check = propagate(sample, check_sizes, _LIMITS)
    ops = []
    for position, op in enumerate(sample.ops):
        values = _at(base, position)
        if op.results is not None and len(values) == len(op.results):
            shapes = [
                recorded.shape
                if recorded.shape is not None
                else _fit(position, item, base, moved, check, hints, check_sizes)
                for item, recorded in enumerate(op.results)
            ]
            results = tuple(
                dataclasses.replace(recorded, shape=shape)
                for recorded, shape in zip(op.results, shapes, strict=True)
            )
            op = dataclasses.replace(op, results=results)
        ops.append(op)
    return dataclasses.replace(sample, ops=tuple(ops))


def _at(results: Results, position: int) -> tuple[Value, ...]:
    return results[position] or ()


def _fit(
    position: int,
    item: int,
    base: Results,
    moved: Mapping[str, Results],
    check: Results,
    hints: Mapping[str, int],
    check_sizes: Mapping[str, int],
) -> tuple[Dim, ...] | None:
    """Return the shape of one result as linear expressions, or None if the shape is not linear."""

    def shape(results: Results) -> tuple[int, ...] | None:
        values = _at(results, position)
        dims = values[item].shape if item < len(values) else None
        return None if dims is None else tuple(map(int, dims))

    at_hints, at_check = shape(base), shape(check)
    at_moved = {name: shape(results) for name, results in moved.items()}
    if at_hints is None or at_check is None or len(at_check) != len(at_hints):
        return None
    dims: list[Dim] = []
    for axis, size in enumerate(at_hints):
        factors = {}
        for name, dims_there in at_moved.items():
            if dims_there is None or len(dims_there) != len(at_hints):
                return None
            factors[name] = (dims_there[axis] - size) // _STEPS[0]
        rest = size - sum(factor * hints[name] for name, factor in factors.items())
        predicted = rest + sum(factor * check_sizes[name] for name, factor in factors.items())
        if predicted != at_check[axis]:
            return None
        dims.append(_expression(factors, rest))
    return tuple(dims)


def _expression(factors: Mapping[str, int], rest: int) -> Dim:
    terms = [
        name if factor == 1 else f"{factor}*{name}" for name, factor in factors.items() if factor
    ]
    if not terms:
        return rest
    if rest:
        terms.append(str(rest))
    return " + ".join(terms).replace("+ -", "- ")
