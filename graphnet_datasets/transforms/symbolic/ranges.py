"""Ranges of the sizes of a graph with symbols, found by walks at many sizes at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ...frameworks.probing import probe
from ...sample import Sample
from .probing import Failure

_DOUBLINGS = 6
_REFINEMENTS = 6
_PARTS = 8


def find_failures(
    sample: Sample,
    points: Sequence[Mapping[str, int]],
    *,
    time_limit_s: float | None = None,
    allow_unchecked_operators: bool = False,
) -> tuple[Failure | None, ...]:
    """Return, for each point, the operator that fails at its sizes, or None.

    Raises:
        MaterializeError, MemoryLimitError, TimeLimitError: the graph cannot be walked.
    """
    with probe(
        sample,
        [sample.hints, *points],
        time_limit_s=time_limit_s,
        allow_unchecked_operators=allow_unchecked_operators,
    ) as prober:
        failures: list[Failure | None] = [None] * (len(points) + 1)
        for position, op in enumerate(sample.ops):
            plain = dataclasses.replace(op, results=None)
            outcomes = prober.call([plain] * len(failures))
            for point, outcome in enumerate(outcomes):
                if outcome.kind == "failed" and failures[point] is None:
                    failures[point] = Failure(position, point, outcome.error)
            prober.keep(outcomes)
    return tuple(failures[1:])


def with_ranges(sample: Sample, steps: Mapping[str, int], **limits: object) -> Sample:
    """Return the sample with the smallest and largest working size of each symbol.

    `steps` are the numbers of which sizes are multiples, counted from the size of the capture.
    Sizes up to 64 times as large are tried; a symbol that works at all of them has no upper bound.

    Raises:
        MaterializeError, MemoryLimitError, TimeLimitError: the graph cannot be walked.
    """
    symbols = []
    for symbol in sample.symbols:
        step = steps.get(symbol.name)
        if step is None:
            symbols.append(symbol)
            continue
        lower = _reach(sample, symbol.name, symbol.hint, -step, limits)
        upper = _reach(sample, symbol.name, symbol.hint, step, limits)
        is_open = upper >= symbol.hint + step * (_largest(symbol.hint, step) // step)
        symbols.append(dataclasses.replace(symbol, lower=lower, upper=None if is_open else upper))
    return dataclasses.replace(sample, symbols=tuple(symbols))


def _largest(hint: int, step: int) -> int:
    return max(hint * (2**_DOUBLINGS - 1), 16 * step)


def _reach(sample: Sample, name: str, hint: int, step: int, limits: Mapping[str, object]) -> int:
    """Return the furthest size, in steps of one sign, up to which all tried sizes work."""
    count = (hint - 1) // -step if step < 0 else _largest(hint, step) // step
    if count < 1:
        return hint
    tried = sorted({max(1, count >> shift) for shift in range(0, 2 * _DOUBLINGS, 3)})
    good, bad = _split(sample, name, hint, step, tried, limits)
    for _ in range(_REFINEMENTS):
        if bad is None or bad - good <= 1:
            break
        width = bad - good
        tried = sorted({good + width * part // _PARTS for part in range(1, _PARTS)} - {good})
        good, worse = _split(sample, name, hint, step, tried, limits, good)
        bad = bad if worse is None else worse
    return hint + step * good


def _split(
    sample: Sample,
    name: str,
    hint: int,
    step: int,
    counts: Sequence[int],
    limits: Mapping[str, object],
    good: int = 0,
) -> tuple[int, int | None]:
    points = [{**sample.hints, name: hint + step * count} for count in counts]
    failures = find_failures(sample, points, **limits)  # type: ignore[arg-type]
    for count, failure in zip(counts, failures, strict=True):
        if failure is not None:
            return good, count
        good = count
    return good, None
