"""Which compiler for which graph, learnt from run records.

The configurations of the two-level dispatcher are compilers (eager is one of them), its inputs are
graphs. Its features are what a record tells and a compilation can find out as well: how many
operators the graph has, and how long eager takes. Times are relative to eager's, so that a graph
that takes a second does not outweigh a thousand that take a millisecond.
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
    """Return float64 [2]: both on a logarithmic scale, on which graphs spread evenly.

    >>> graph_features(7, 0.25)
    array([ 3., -2.])
    """
    return np.array([math.log2(1 + num_ops), math.log2(max(eager_ms, 1e-6))])


def learn_compilers(
    records: Iterable[Mapping[str, Any]], *, t: int = -3, seed: int = 0
) -> TwoLevelDispatcher:
    """Return a dispatcher fitted to run records of several compilers on the same samples.

    A compiler that failed on a sample, or is wrong at the tolerance `t`, is infinitely slow there.
    A sample counts where every compiler has a record; of several records the last one does.

    Raises:
        MissingExtraError: scikit-learn is not installed.
        TuningError: fewer than ten samples count.
    """
    by_sample: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in records:
        by_sample.setdefault(str(row["sample_id"]), {})[str(row["compiler"])] = row
    names = sorted({name for each in by_sample.values() for name in each} - {EAGER})
    inputs, times = [], []
    for each in by_sample.values():
        eager_ms = next((ms for row in each.values() if (ms := eager_ms_of(row)) is not None), None)
        if eager_ms is None or not names or not each.keys() >= set(names):
            continue
        num_ops = next(iter(each.values()))["num_ops"] or 0
        inputs.append(graph_features(num_ops, eager_ms))
        times.append([1.0, *(relative_time(each[name], t) for name in names)])
    if len(inputs) < MIN_SAMPLES:
        raise TuningError(
            f"{len(inputs)} samples have a record of every compiler ({', '.join(names) or 'none'}) "
            f"and {MIN_SAMPLES} are needed. Run the compilers on the same samples, with "
            "`graphnet run … --compiler A --compiler B --out runs`."
        )
    dispatcher = TwoLevelDispatcher(seed=seed)
    dispatcher.fit(np.array(inputs), [EAGER, *names], np.array(times), np.zeros(len(FEATURES)))
    return dispatcher


def eager_ms_of(row: Mapping[str, Any]) -> float | None:
    """Return the median of eager's calls in milliseconds, None where it was not timed."""
    found = row["baseline_latency_ms"]
    return float(np.median(found)) if found else None


def relative_time(row: Mapping[str, Any] | None, t: int) -> float:
    """Return the time of a run over eager's; infinite where it is missing, failed or is wrong.

    >>> relative_time({"status": "ok", "min_t": -5.0, "speedup": 2.0}, -3)
    0.5
    """
    if row is None:
        return math.inf
    is_right = row["status"] == "ok" and row["min_t"] is not None and row["min_t"] <= t
    return 1 / row["speedup"] if is_right and row["speedup"] else math.inf
