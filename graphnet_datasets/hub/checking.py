"""The checks that samples must pass before they are pushed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from ..sample import Sample
from ..storage.table import to_arrow
from ..validation import CHECKS, CheckResult, Validation, Validator
from ..version import __version__
from .gather import Place
from .results import Skipped

BATCH = 100


def check_tables(
    tables: Mapping[Place, pa.Table],
    known_ids: Mapping[str, str],
    repo_id: str,
    skip_reason: str | None,
) -> tuple[dict[Place, pa.Table], list[Skipped]]:
    """Return the new valid rows with the results of their checks, and the skipped rows.

    `known_ids` maps signature hashes of the repository to ids. If `skip_reason` is not None, rows
    are not checked and record this reason instead of results.
    """
    passed: dict[Place, pa.Table] = {}
    skipped: list[Skipped] = []
    with Validator() as validator:
        for place, table in tables.items():
            fresh = leave_out_known(table, "signature_hash", "id", known_ids, repo_id, skipped)
            batches = [
                to_arrow(rows)
                for batch in fresh.to_batches(max_chunksize=BATCH)
                if (rows := list(_check(batch.to_pylist(), validator, skip_reason, skipped)))
            ]
            if batches:
                passed[place] = pa.concat_tables(batches)
    return passed, skipped


def leave_out_known(
    table: pa.Table,
    key: str,
    label: str,
    known_labels: Mapping[str, str],
    repo_id: str,
    skipped: list[Skipped],
) -> pa.Table:
    """Return the rows of a table that a repository lacks, and append the others to `skipped`."""
    is_fresh = []
    for value, name in zip(table[key].to_pylist(), table[label].to_pylist(), strict=True):
        is_fresh.append(value not in known_labels)
        if value in known_labels:
            same = f" as `{known_labels[value]}`" if known_labels[value] != name else ""
            skipped.append(Skipped(name, f"`{repo_id}` has it already{same}."))
    return table.filter(pa.array(is_fresh, pa.bool_()))


def _check(
    rows: list[dict[str, Any]],
    validator: Validator,
    skip_reason: str | None,
    skipped: list[Skipped],
) -> Iterator[dict[str, Any]]:
    from datasets.utils import tqdm

    if skip_reason is not None:
        for row in rows:
            yield row | _unchecked(row["id"], skip_reason).to_columns()
        return
    for row in tqdm(rows, desc="Validating", unit="graph", disable=len(rows) == 1 or None):
        validation = validator.validate(Sample.from_row(row))
        if validation.is_valid:
            yield row | validation.to_columns()
        else:
            skipped.append(Skipped(row["id"], f"It is not valid: {validation.why_excluded}"))


def _unchecked(sample_id: str, skip_reason: str) -> Validation:
    versions = {"graphnet-datasets": __version__}
    reason = f"Not checked before it was pushed: {skip_reason}"
    return Validation(
        sample_id, tuple(CheckResult(check, "skipped", reason, versions) for check in CHECKS)
    )
