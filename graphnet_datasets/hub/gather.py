"""What a push takes in: samples and rows, checked, as one sorted table per config and split."""

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
    """Return the samples as a sorted table per config and split, and what is left out of them."""
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
            skipped.append(Skipped(row["id"], f"It stands twice in this push{same}."))
            continue
        seen[signature] = row["id"]
        own = TRUNCATED if row["is_truncated"] else row["task"]
        place = (config or own, split or split_of_row(row))
        rows = rows_of.setdefault(place, [])
        rows.append(row)
        if len(rows) == ROW_GROUP_SIZE:
            # Arrow holds a graph in a tenth of the memory of Python's lists and dictionaries.
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
            f"A sample or a row of one can be pushed, not `{type(item).__name__}`. Give an "
            "iterable of them."
        )
    sample = Sample.from_row(item)
    # A row may say anything of itself; hashes decide what is a duplicate and are computed here.
    stated = {name: item.get(name) for name in DERIVED_COLUMNS}
    return sample_to_row(sample, {**stated, **derived_columns(sample)})


def rows_of_table(rows: Any, kind: Table) -> pa.Table:
    """Return rows (an Arrow table, a `datasets.Dataset`, dictionaries) with the columns of `kind`.

    Raises:
        SchemaError: they have other columns, or a value of another type.
        FormatVersionError: they are of another format version.
    """
    table = rows
    if not isinstance(rows, pa.Table):
        # A `datasets.Dataset` may be a selection of the table behind it; formats apply to rows.
        to_arrow_table: Callable[[], pa.Table] | None = getattr(rows, "with_format", None) and (
            lambda: rows.with_format("arrow")[:]
        )
        table = to_arrow_table() if to_arrow_table else pa.Table.from_pylist(list(rows))
    table = with_later_columns(table, kind.schema, kind.later)
    names = kind.schema.names
    odd = sorted(set(table.schema.names) ^ set(names)) if table.num_columns else []
    if odd:
        raise SchemaError(
            f"These rows have other columns than the table `{kind.name}`: {', '.join(odd)} missing "
            "or unknown."
        )
    if not table.num_rows:
        return kind.schema.empty_table()
    for version in table["schema_version"].unique().to_pylist():
        if version != SCHEMA_VERSION:
            raise FormatVersionError(
                f"These {kind.rows} are of format version {version}; this library writes "
                f"{SCHEMA_VERSION}. Push them with the release of `graphnet-datasets` that made "
                "them."
            )
    try:
        return table.select(names).cast(kind.schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"A row does not fit the table `{kind.name}`: {error}") from error
