"""Contributions of samples to S(t), which is their geometric mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ScoreError, raises_only
from .records import Floats, is_counted, make_records
from .run_sets import Duplicates, as_table, single_arm, without_duplicates
from .variants import check_parameters, find_variant


@raises_only(ScoreError)
def log_contributions(
    runs: Any,
    p: float | None = None,
    b: float = 0.1,
    variant: str = "report",
    *,
    duplicates: Duplicates = "refuse",
) -> tuple[tuple[str, ...], Floats]:
    """Return the ids of the samples in N of one arm, and the logarithms of their contributions.

    The array has a row for each t of the variant's `tolerances` and a column for each sample. S(t)
    is exp of a row's mean, if the variant keeps all samples at every t. Parameters are those of
    `speedup_score`.

    Raises:
        ScoreError, SchemaError: As in `speedup_score`, or the variant drops samples at some t.

    >>> rows = [
    ...     {"sample_id": "a", "status": "ok", "speedup": 2.0, "min_t": -5.0},
    ...     {"sample_id": "b", "status": "compile_failed"},
    ... ]
    >>> ids, logs = log_contributions(rows)
    >>> t = find_variant("report").tolerances.index(-3)
    >>> ids, np.exp(logs[t]).round(3).tolist()
    (('a', 'b'), [2.0, 0.1])
    """
    chosen = find_variant(variant)
    if chosen.leaves_out_undecidable:
        raise ScoreError(
            f"The variant `{variant}` counts different samples at each t, so contributions are not "
            "defined. Choose `report` or one of upstream's."
        )
    p = chosen.default_p if p is None else p
    check_parameters(p, b)
    table = as_table(runs)
    single_arm(table)
    table = without_duplicates(table, duplicates)
    records = make_records(table, chosen)
    counted = np.array(table["sample_id"].to_pylist(), dtype=object)[is_counted(table, chosen)]
    t = np.minimum(np.array(chosen.tolerances), chosen.last_tolerance("S"))
    is_correct = records.passes(t)
    rectified = records.log_speedup + p * np.minimum(records.log_speedup, 0.0)
    return tuple(counted.tolist()), np.where(is_correct, rectified, math.log(b))
