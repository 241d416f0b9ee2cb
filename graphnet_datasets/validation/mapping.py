"""Validation of many samples: parallel, resumable, with results as they come."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..analysis.splits import split_of_row
from ..isolation import LocalPool
from ..sample import Sample
from ..schema import EXCLUDED, config_of
from ..storage.mapping import MapWorker, Result, ResumableMap, row_item
from ..storage.selection import Chosen
from ..storage.staging import Staging
from ..storage.table import to_arrow
from .outcomes import Validation
from .validator import Validator, find_versions


def validate_rows(
    chosen: Chosen,
    checks: Sequence[str],
    make_validator: Callable[[], Validator],
    staging: Staging,
    *,
    terms: Mapping[str, Any],
    keeps_rows: bool,
    jobs: int,
) -> Iterator[tuple[Validation, Result]]:
    """Yield the validation of each sample in order of completion, stored ones first.

    `jobs` validators work at the same time. `terms` are their settings, which are part of the key
    of results in `staging`. With `keeps_rows`, each result has the row with its validation columns,
    and notes about its place in a dataset.
    """
    versions = {name: find_versions(name) for name in sorted(chosen.frameworks)}
    job = {"checks": [*checks], "keeps_rows": keeps_rows, "versions": versions, **terms}
    mapping = ResumableMap(staging, job)

    def make_worker() -> MapWorker:
        validator = make_validator()

        def check(row: Mapping[str, Any], job: Mapping[str, Any]) -> tuple[list[Any], Any]:
            validation = validator.validate(Sample.from_row(row), job["checks"])
            columns = validation.to_columns()
            if not job["keeps_rows"]:
                return [], columns
            checked = {**row, **columns}
            config = config_of(checked)
            place = [config, "train" if config == EXCLUDED else split_of_row(row)]
            return [to_arrow([checked])], {**columns, "place": place, "num_ops": row["num_ops"]}

        return MapWorker(check, validator.close)

    with contextlib.closing(LocalPool(make_worker, jobs)) as pool:
        for result in mapping.run(map(row_item, chosen.stream()), pool):
            validation = Validation.from_row({"id": result.sample_id, **result.notes})
            assert validation is not None  # noqa: S101 - the notes have the column
            yield validation, result
    mapping.report_ignored()
