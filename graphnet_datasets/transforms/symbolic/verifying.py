"""Verification of a graph with symbols by runs at other sizes."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from ...errors import GraphNetError, TransformError
from ...frameworks import module
from ...frameworks.stepping import steps as run_steps
from ...sample import Sample, Symbol
from .reify import find_misfit, reify

CheckedSizes: TypeAlias = tuple[Mapping[str, int], ...]

NUM_RUNS = 3


def check_by_runs(
    sample: Sample, steps: Mapping[str, int], **options: Any
) -> tuple[Sample, CheckedSizes]:
    """Run the sample at three sizes, and return it with these sizes.

    If it does not run above the sizes of the capture (for example, because a table of positions is
    too short), these become the upper bounds of its symbols. `options` are passed to `materialize`.

    Raises:
        TransformError: it does not run at three sizes.
    """
    first: TransformError | None = None
    for capped in ((), *((name,) for name in steps), tuple(steps)):
        tried = _capped(sample, capped)
        checked: list[Mapping[str, int]] = []
        try:
            for sizes in sizes_to_run(tried, steps):
                run_at(tried, sizes, **options)
                checked.append(sizes)
        except TransformError as error:
            first = first or error
            continue
        if len(checked) == NUM_RUNS:
            return tried, tuple(checked)
    raise first or TransformError(
        f"`{sample.id}` has fewer than {NUM_RUNS} other sizes.", reason="there are too few sizes"
    )


def find_culprit(sample: Sample, steps: Mapping[str, int], **options: Any) -> str:
    """Return the symbol that prevents runs at other sizes; the last if none does alone."""
    for name in steps:
        try:
            check_by_runs(sample, {name: steps[name]}, **options)
        except TransformError:
            return name
    return list(steps)[-1]


def sizes_to_run(sample: Sample, steps: Mapping[str, int]) -> Iterator[Mapping[str, int]]:
    """Yield up to three sets of sizes: larger, smaller and mixed."""
    tried: list[Mapping[str, int]] = []
    choices = {
        symbol.name: list(_near(symbol, steps[symbol.name]))
        for symbol in sample.symbols
        if symbol.name in steps
    }
    for at in range(4 * NUM_RUNS):
        sizes = dict(sample.hints)
        for order, (name, near) in enumerate(choices.items()):
            if near:
                sizes[name] = near[(at + order * (at >= 2)) % len(near)]
        if sizes != sample.hints and sizes not in tried and not find_misfit(sample, sizes):
            tried.append(sizes)
            yield sizes
        if len(tried) == NUM_RUNS:
            return


def run_at(sample: Sample, sizes: Mapping[str, int], **options: Any) -> None:
    """Run the graph at given sizes, operator by operator.

    Raises:
        TransformError: the graph does not run; the message contains the sizes and the operator.
    """
    concrete = reify(sample, sizes)
    try:
        run_concrete(concrete, **options)
    except GraphNetError as error:
        raise TransformError(
            f"`{sample.id}` does not run at {dict(sizes)}: {error}",
            reason=f"it does not run at other sizes ({type(error).__name__})",
        ) from error


def run_concrete(sample: Sample, **options: Any) -> None:
    """Run a graph on the CPU, operator by operator; `options` are passed to `materialize`.

    Raises:
        CalibrationError: an operator fails; the message names it.
        UnknownOperatorError, MemoryLimitError, MaterializeError: as `materialize`.
    """
    with module(sample.framework, "observing").stepping(sample, **options) as stepper:
        for _ in run_steps(stepper):
            pass


def _near(symbol: Symbol, step: int) -> Iterator[int]:
    """Yield sizes slightly larger and smaller than the size of the capture, in turn."""
    share = max(1, round(0.2 * symbol.hint / step))
    for more in (0, 1, 2, share + 1):
        for count in (share + more, -share - more):
            size = symbol.hint + count * step
            if size >= (symbol.lower or 1) and (symbol.upper is None or size <= symbol.upper):
                yield size


def _capped(sample: Sample, names: Collection[str]) -> Sample:
    symbols = tuple(
        dataclasses.replace(symbol, upper=symbol.hint) if symbol.name in names else symbol
        for symbol in sample.symbols
    )
    return dataclasses.replace(sample, symbols=symbols)
