"""A dispatcher of graphs to compilers, learned from run records.

The configurations of the two-level dispatcher are compilers, including eager, and its inputs are
graphs. Features must be known both from a record and at compile time: the number of operators, and
the time of eager. Times are relative to eager, so that a graph of one second does not outweigh a
thousand graphs of a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...errors import TuningError
from .two_level import TwoLevelDispatcher

EAGER = "eager"
MIN_SAMPLES = 10
FEATURES = ("num_ops", "eager_ms")


def graph_features(num_ops: int, eager_ms: float) -> np.ndarray:
    """Return float64 [2]: both values on a log scale, which spreads graphs evenly.

    >>> graph_features(7, 0.25)
    array([ 3., -2.])
    """
    return np.array([math.log2(1 + num_ops), math.log2(max(eager_ms, 1e-6))])


def learn_compilers(
    records: Iterable[Mapping[str, Any]], *, t: int = -3, seed: int = 0
) -> TwoLevelDispatcher:
    """Return a dispatcher fitted to run records of several compilers on the same samples.

    A compiler that failed on a sample, or is wrong at the tolerance `t`, has infinite time there.
    Samples without a record of every compiler are ignored; of several records the last is used.

    Raises:
        MissingExtraError: scikit-learn is not installed.
        TuningError: fewer than ten samples are usable.
    """
    by_sample: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in records:
        by_sample.setdefault(str(row["sample_id"]), {})[str(row["compiler"])] = row
    names = sorted({name for runs in by_sample.values() for name in runs} - {EAGER})
    inputs, times = [], []
    for runs in by_sample.values():
        eager_ms = next((ms for row in runs.values() if (ms := eager_ms_of(row)) is not None), None)
        if eager_ms is None or not names or not runs.keys() >= set(names):
            continue
        num_ops = next(iter(runs.values()))["num_ops"] or 0
        inputs.append(graph_features(num_ops, eager_ms))
        times.append([1.0, *(relative_time(runs[name], t) for name in names)])
    if len(inputs) < MIN_SAMPLES:
        raise TuningError(
            f"Only {len(inputs)} samples have a record of every compiler "
            f"({', '.join(names) or 'none'}); {MIN_SAMPLES} are needed. Run the compilers on the "
            "same samples, with "
            "`graphnet run … --compiler A --compiler B --out runs`."
        )
    dispatcher = TwoLevelDispatcher(seed=seed)
    dispatcher.fit(np.array(inputs), [EAGER, *names], np.array(times), np.zeros(len(FEATURES)))
    return dispatcher


def eager_ms_of(row: Mapping[str, Any]) -> float | None:
    """Return eager's median latency in milliseconds, or None if it was not timed."""
    times_ms = row["baseline_latency_ms"]
    return float(np.median(times_ms)) if times_ms else None


def relative_time(row: Mapping[str, Any] | None, t: int) -> float:
    """Return the time of a run relative to eager; infinite if missing, failed or wrong.

    >>> relative_time({"status": "ok", "min_t": -5.0, "speedup": 2.0}, -3)
    0.5
    """
    if row is None:
        return math.inf
    is_right = row["status"] == "ok" and row["min_t"] is not None and row["min_t"] <= t
    return 1 / row["speedup"] if is_right and row["speedup"] else math.inf
