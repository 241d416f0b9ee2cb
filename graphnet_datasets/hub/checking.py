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
    tables: Mapping[Place, pa.Table], known: Mapping[str, str], repo_id: str, why_not: str | None
) -> tuple[dict[Place, pa.Table], list[Skipped]]:
    """Return the valid rows that are not known, with what the checks found, and those left out.

    `known` maps signature hashes of the repository to ids. `why_not` is the reason why nothing is
    checked; it is recorded in each row in place of outcomes.
    """
    passed: dict[Place, pa.Table] = {}
    skipped: list[Skipped] = []
    with Validator() as validator:
        for place, table in tables.items():
            fresh = leave_out_known(table, "signature_hash", "id", known, repo_id, skipped)
            batches = [
                to_arrow(rows)
                for batch in fresh.to_batches(max_chunksize=BATCH)
                if (rows := list(_check(batch.to_pylist(), validator, why_not, skipped)))
            ]
            if batches:
                passed[place] = pa.concat_tables(batches)
    return passed, skipped


def leave_out_known(
    table: pa.Table,
    key: str,
    label: str,
    known: Mapping[str, str],
    repo_id: str,
    skipped: list[Skipped],
) -> pa.Table:
    """Return the rows of a table that a repository lacks, and note those that it has."""
    is_fresh = []
    for value, name in zip(table[key].to_pylist(), table[label].to_pylist(), strict=True):
        is_fresh.append(value not in known)
        if value in known:
            same = f" as `{known[value]}`" if known[value] != name else ""
            skipped.append(Skipped(name, f"`{repo_id}` has it already{same}."))
    return table.filter(pa.array(is_fresh, pa.bool_()))


def _check(
    rows: list[dict[str, Any]], validator: Validator, why_not: str | None, skipped: list[Skipped]
) -> Iterator[dict[str, Any]]:
    from datasets.utils import tqdm

    if why_not is not None:
        for row in rows:
            yield row | _unchecked(row["id"], why_not).to_columns()
        return
    for row in tqdm(rows, desc="Validating", unit="graph", disable=len(rows) == 1 or None):
        validation = validator.validate(Sample.from_row(row))
        if validation.is_valid:
            yield row | validation.to_columns()
        else:
            skipped.append(Skipped(row["id"], f"It is not valid: {validation.why_excluded}"))


def _unchecked(sample_id: str, why_not: str) -> Validation:
    versions = {"graphnet-datasets": __version__}
    reason = f"Not checked before it was pushed: {why_not}"
    return Validation(
        sample_id, tuple(CheckResult(check, "skipped", reason, versions) for check in CHECKS)
    )
