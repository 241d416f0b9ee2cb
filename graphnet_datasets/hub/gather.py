"""Preparation of samples and rows for a push: checked, as a sorted table per config and split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..analysis.columns import derived_columns
from ..analysis.splits import split_of_row
from ..errors import FormatVersionError, GraphNetError, SchemaError
from ..sample import Sample
from ..schema import DERIVED_COLUMNS, SCHEMA_VERSION, TRUNCATED, Table, sample_to_row
from ..schema.run_files import with_later_columns
from ..storage.table import ROW_GROUP_SIZE, to_arrow
from .results import Skipped

Place = tuple[str, str]
"""A config and a split."""


def gather(
    samples: Iterable[Sample | Mapping[str, Any]], config: str | None, split: str | None
) -> tuple[dict[Place, pa.Table], list[Skipped]]:
    """Return the samples as a sorted table per config and split, and the skipped samples."""
    batches: dict[Place, list[pa.Table]] = {}
    rows_of: dict[Place, list[dict[str, Any]]] = {}
    seen: dict[str, str] = {}
    skipped: list[Skipped] = []
    for item in samples:
        try:
            row = _to_row(item)
        except FormatVersionError:
            raise
        except GraphNetError as error:
            if not isinstance(item, Sample | Mapping):
                raise
            name = item.id if isinstance(item, Sample) else item.get("id")
            skipped.append(Skipped(str(name), str(error)))
            continue
        signature = row["signature_hash"]
        if signature in seen:
            same = f" as `{seen[signature]}`" if seen[signature] != row["id"] else ""
            skipped.append(Skipped(row["id"], f"It occurs twice in this push{same}."))
            continue
        seen[signature] = row["id"]
        own = TRUNCATED if row["is_truncated"] else row["task"]
        place = (config or own, split or split_of_row(row))
        rows = rows_of.setdefault(place, [])
        rows.append(row)
        if len(rows) == ROW_GROUP_SIZE:
            # Arrow uses a tenth of the memory of Python's lists and dictionaries.
            batches.setdefault(place, []).append(to_arrow(rows))
            rows.clear()
    for place, rows in rows_of.items():
        batches.setdefault(place, []).append(to_arrow(rows))
    tables = {place: pa.concat_tables(parts) for place, parts in sorted(batches.items())}
    return {place: _by_size(table) for place, table in tables.items()}, skipped


def _by_size(table: pa.Table) -> pa.Table:
    """Sort by `num_ops`, so that a filter on size skips whole row groups."""
    return table.sort_by([("num_ops", "ascending"), ("id", "ascending")])


def _to_row(item: Sample | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(item, Sample):
        return sample_to_row(item, derived_columns(item))
    if not isinstance(item, Mapping):
        raise SchemaError(
            f"A push needs samples or their rows, got `{type(item).__name__}`. Pass an iterable of "
            "them."
        )
    sample = Sample.from_row(item)
    # Rows are untrusted; the hashes that detect duplicates are recomputed.
    stated = {name: item.get(name) for name in DERIVED_COLUMNS}
    return sample_to_row(sample, {**stated, **derived_columns(sample)})


def rows_of_table(rows: Any, kind: Table) -> pa.Table:
    """Convert an Arrow table, a `datasets.Dataset` or dictionaries to the columns of `kind`.

    Raises:
        SchemaError: the columns differ, or a value has a wrong type.
        FormatVersionError: the rows have another format version.
    """
    table = rows
    if not isinstance(rows, pa.Table):
        # A `datasets.Dataset` may be a selection from a larger table; formats apply to its rows.
        to_arrow_table: Callable[[], pa.Table] | None = getattr(rows, "with_format", None) and (
            lambda: rows.with_format("arrow")[:]
        )
        table = to_arrow_table() if to_arrow_table else pa.Table.from_pylist(list(rows))
    table = with_later_columns(table, kind.schema, kind.later)
    names = kind.schema.names
    mismatched = sorted(set(table.schema.names) ^ set(names)) if table.num_columns else []
    if mismatched:
        raise SchemaError(
            f"The columns of the rows differ from those of the table `{kind.name}`: "
            f"{', '.join(mismatched)} missing or unknown. Correct the rows."
        )
    if not table.num_rows:
        return kind.schema.empty_table()
    for version in table["schema_version"].unique().to_pylist():
        if version != SCHEMA_VERSION:
            raise FormatVersionError(
                f"The {kind.rows} have format version {version}; this library writes "
                f"{SCHEMA_VERSION}. Push them with the release of `graphnet-datasets` that created "
                "them."
            )
    try:
        return table.select(names).cast(kind.schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"A row does not match the table `{kind.name}`: {error}. Correct its values."
        ) from error
