"""Expected verdicts of records of the config `compiler_bugs`."""

from __future__ import annotations

import pyarrow as pa

from ..errors import DatasetNotFoundError
from ..schema.tables import COMPILER_BUGS
from ..scores import Expectation, compare_with_expected
from ..storage.selection import read_rows


def expected_verdicts(runs: pa.Table, dataset: str) -> list[Expectation]:
    """Return the expected verdicts of records of the config `compiler_bugs` beside their own.

    The list is empty if no record belongs to that config, or if the dataset lacks the config.

    >>> from graphnet_datasets.schema import RUNS_SCHEMA
    >>> expected_verdicts(RUNS_SCHEMA.empty_table(), "graphnet")
    []
    """
    config = COMPILER_BUGS.name
    ids = sorted({name for name in runs["sample_id"].to_pylist() if name.startswith(f"{config}/")})
    if not ids:
        return []
    try:
        rows = list(read_rows(dataset, config, ids, ("id", "expected")))
    except DatasetNotFoundError:
        return []
    return compare_with_expected(rows, runs.to_pylist())
