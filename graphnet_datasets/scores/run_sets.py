"""Run records as an Arrow table, whatever their source, and their division into arms.

An arm is the unit of a score: one version of one compiler with its options, against one baseline,
on one kind of device, with weights and inputs made in one way. A score over several arms would
describe no compiler. Other differences among records (machines, settings) are reported beside the
score: `conditions`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ..decoding import load_json
from ..errors import FormatVersionError, SchemaError, ScoreError, raises_only
from ..schema import RUNS_SCHEMA, SCHEMA_VERSION, Status
from ..schema.run_files import find_run_files, read_run_file, without_copies
from ..schema.runs import COLD
from ..terminal import counted

ARM_COLUMNS = (
    "compiler",
    "compiler_version",
    "compiler_source",
    "compiler_options",
    "baseline",
    "device",
    "weights",
    "input_mode",
    "cache_mode",
    "launch_mode",
    "num_threads",
)
_MAY_BE_UNKNOWN = (
    "compiler_version", "compiler_source", "baseline", "cache_mode", "launch_mode", "num_threads",
)  # fmt: skip
"""Columns that are missing in early failures and older files; such a record may belong to any arm.
"""

REQUIRED_COLUMNS = ("sample_id", "status", "speedup", "min_t")

NAMELESS = "unnamed compiler"

Duplicates = Literal["refuse", "newest"]


@raises_only(ScoreError)
def as_table(runs: Any) -> pa.Table:
    """Return run records as one table with the columns of `RUNS_SCHEMA` that scores need.

    `runs` is a `datasets.Dataset`, a table, a path (a Parquet file or a directory of Parquet
    files) or rows as mappings. Columns that the records lack and scores can do without are null.

    Raises:
        DatasetNotFoundError: there are no records at the path.
        SchemaError: a column that scores need is missing or has another type.
        FormatVersionError: the records are of another format version.

    >>> as_table([{"sample_id": "a", "status": "ok", "speedup": 2.0, "min_t": -3.0}]).num_rows
    1
    """
    table = _read(runs)
    column_names = frozenset(table.column_names)  # the property builds a new list on each access
    missing = [name for name in REQUIRED_COLUMNS if name not in column_names]
    if missing:
        raise SchemaError(
            f"The run records lack the columns {', '.join(f'`{name}`' for name in missing)}. "
            "Records are written by `graphnet run` and `graphnet import-log`."
        )
    columns = {}
    for field in RUNS_SCHEMA:
        if field.name not in column_names:
            columns[field.name] = pa.nulls(table.num_rows, field.type)
            continue
        column = table[field.name]
        if column.type == field.type:  # avoids needless casts
            columns[field.name] = column
            continue
        try:
            columns[field.name] = column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaError(
                f"The column `{field.name}` of the run records has the type "
                f"{column.type}, but it must be {field.type}."
            ) from error
    for version in columns["schema_version"].unique().to_pylist():
        if version not in (None, SCHEMA_VERSION):
            raise FormatVersionError(
                f"The run records are of format version {version}, but this library reads version "
                f"{SCHEMA_VERSION}. Install the version of `graphnet-datasets` that wrote them."
            )
    return _with_cold_compile_times(_without_speedups_of_failures(pa.table(columns)))


def _with_cold_compile_times(table: pa.Table) -> pa.Table:
    """Keep only the compile times of runs that started with empty compile caches."""
    is_cold = [cache in (None, COLD) for cache in table["compile_cache"].to_pylist()]
    if all(is_cold):
        return table
    for name in ("compile_time_s", "break_even_calls"):
        column = table[name]
        values = [
            value if is_kept else None
            for value, is_kept in zip(column.to_pylist(), is_cold, strict=True)
        ]
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.array(values, column.type))
    return table


def _without_speedups_of_failures(table: pa.Table) -> pa.Table:
    """Remove the speedups of runs that are not `ok`, which earlier files contain.

    Speedups that upstream's tools compute from their logs remain.
    """
    statuses = table["status"].to_pylist()
    is_failed = np.array([status != Status.OK for status in statuses], dtype=bool)
    figures = ("speedup", "speedup_low", "speedup_high")
    if not any((is_failed & table[name].is_valid().to_numpy()).any() for name in figures):
        return table
    speedup = table["speedup"].to_pylist()
    logged = zip(
        table["upstream_status"].to_pylist(), table["upstream_speedup"].to_pylist(), speedup,
        strict=True,
    )  # fmt: skip
    columns = {"upstream_speedup": [speedup or (word and value) for word, speedup, value in logged]}
    for name in figures:
        values = table[name].to_pylist()
        columns[name] = [
            None if failed else value for failed, value in zip(is_failed, values, strict=True)
        ]
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values, pa.float64()))
    return table


def _read(runs: Any) -> pa.Table:
    if isinstance(runs, pa.Table):
        return runs
    if isinstance(runs, str | os.PathLike):
        return _read_path(Path(runs))
    if hasattr(runs, "with_format") and hasattr(runs, "features"):
        # The dataset's inner table ignores `select` and `filter`; its Arrow format applies them.
        return runs.with_format("arrow")[:]
    if isinstance(runs, Iterable):
        rows = list(runs)
        if all(isinstance(row, Mapping) for row in rows):
            try:
                return pa.Table.from_pylist(rows, schema=RUNS_SCHEMA)
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise SchemaError(f"A row is not a run record: {error}") from error
    raise SchemaError(
        "Run records must be a dataset, an Arrow table, a path or rows, but got a "
        f"`{type(runs).__name__}`."
    )


def _read_path(path: Path) -> pa.Table:
    files = find_run_files(path)
    tables = [read_run_file(file) for file in files]
    try:
        # Records of older versions may lack fields of their outputs.
        table = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaError(
            f"The {len(files)} files of run records at `{path}` have different columns: "
            f"{str(error).splitlines()[0]}. Pass the directory of one run."
        ) from error
    return without_copies(table)


@raises_only(ScoreError)
def split_arms(table: pa.Table) -> dict[str, pa.Table]:
    """Return the records of each arm under its name, in the order of their first records.

    The name is the compiler's, followed by the distinguishing columns and options in parentheses if
    several arms share the compiler.

    >>> rows = [{"sample_id": "a", "status": "run_failed", "compiler": name} for name in "xyx"]
    >>> {name: arm.num_rows for name, arm in split_arms(as_table(rows)).items()}
    {'x': 2, 'y': 1}
    """
    if all(len(table[name].unique()) == 1 for name in ARM_COLUMNS):
        return {table["compiler"][0].as_py() or NAMELESS: table}
    columns = {name: _arm_values(table, name) for name in ARM_COLUMNS}
    for name in _MAY_BE_UNKNOWN:
        columns[name] = _filled(columns[name], columns["compiler"])
    keys = list(zip(*columns.values(), strict=True))
    index_of = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    arm_of_row = np.array([index_of[key] for key in keys], dtype=np.int64)
    return {
        name: table.filter(pa.array(arm_of_row == index))
        for name, index in zip(_arm_names(list(index_of)), index_of.values(), strict=True)
    }


def device_kind(table: pa.Table) -> str:
    """Return the kind of device of one arm's records; "" if no record has a device.

    >>> device_kind(pa.table({"device": [None, "cuda:1"]}))
    'cuda'
    """
    return next((name.partition(":")[0] for name in table["device"].to_pylist() if name), "")


def _arm_values(table: pa.Table, name: str) -> list[str]:
    values = ["" if value is None else str(value) for value in table[name].to_pylist()]
    if name == "device":
        # cuda:0 and cuda:1 of one machine are workers of one run.
        return [value.partition(":")[0] for value in values]
    if name == "compiler_options":
        canonical = {value: _canonical_options(value) for value in set(values)}
        return [canonical[value] for value in values]
    return values


def _canonical_options(text: str) -> str:
    """Normalise the order and spacing of options; empty options become "".

    A string that is not a JSON object is returned unchanged.
    """
    try:
        options = load_json(text, "the options of a run")
        if not isinstance(options, dict):
            return text
        return json.dumps(options, sort_keys=True) if options else ""
    except (ValueError, RecursionError):  # ValueError also for integers of 5,000 digits
        return text


def _filled(values: list[str], compilers: list[str]) -> list[str]:
    """Fill missing values with the compiler's single known value."""
    by_compiler: dict[str, set[str]] = {}
    for value, compiler in zip(values, compilers, strict=True):
        if value:
            by_compiler.setdefault(compiler, set()).add(value)
    only = {
        compiler: next(iter(names)) for compiler, names in by_compiler.items() if len(names) == 1
    }
    return [
        value or only.get(compiler, "") for value, compiler in zip(values, compilers, strict=True)
    ]


def _arm_names(keys: list[tuple[str, ...]]) -> list[str]:
    """Return names that distinguish arms of one compiler; between devices, only by the device.

    Differences in versions and threads between machines are not part of the name.
    """
    device = ARM_COLUMNS.index("device")
    names = []
    for key in keys:
        same_compiler = [other for other in keys if other[0] == key[0]]
        same_device = [other for other in same_compiler if other[device] == key[device]]
        details: list[str] = []
        for i in range(1, len(key)):
            values = {other[i] for other in (same_compiler if i == device else same_device)}
            if len(values) == 1:
                continue
            if ARM_COLUMNS[i] == "compiler_options":
                details += _differing_options(key[i], values)
            else:
                details.append(f"{ARM_COLUMNS[i]} {key[i] or 'none'}")
        name = key[0] or NAMELESS
        names.append(f"{name} ({', '.join(details)})" if details else name)
    return names


_BARE_WORD = re.compile(r"(?!(?:true|false|null|NaN|Infinity)$)[A-Za-z_][\w.-]*")


def _differing_options(text: str, others: set[str]) -> list[str]:
    """Return the options that differ from the others, or the whole text if it is not an object.

    Different options are formatted differently: only strings that are not JSON values lose their
    quotes.

    >>> _differing_options('{"mode": "max", "n": 1}', {'{"mode": "max", "n": 1}', '{"n": 1}'})
    ['mode=max']
    """
    try:
        parsed = [
            load_json(options, "the options of a run") if options else {}
            for options in (text, *others)
        ]
        settings = [
            {name: json.dumps(value, sort_keys=True) for name, value in record.items()}
            for record in parsed
        ]
    except (ValueError, AttributeError, RecursionError):  # not a JSON object
        return [f"compiler_options {text or 'none'}"]
    own = parsed[0]
    differing = [
        name
        for name in sorted(own)
        if len({settings_of_run.get(name) for settings_of_run in settings}) > 1
    ]
    return [f"{_plain(name)}={_plain(own[name])}" for name in differing]


def _plain(value: Any) -> str:
    is_word = isinstance(value, str) and _BARE_WORD.fullmatch(value)
    return value if is_word else json.dumps(value, sort_keys=True)


def single_arm(table: pa.Table) -> str:
    """Return the name of the only arm, or "" without records.

    Raises:
        ScoreError: The records belong to several arms.
    """
    arms = split_arms(table)
    if len(arms) > 1:
        listed = ", ".join(f"`{name}` ({arm.num_rows} runs)" for name, arm in arms.items())
        raise ScoreError(
            f"These run records belong to {len(arms)} arms: {listed}. A score is that of one arm. "
            "Filter the records first, for example "
            '`runs.filter(lambda row: row["compiler"] == …)`, or choose an arm with '
            "`graphnet score --compiler`."
        )
    return next(iter(arms), "")


def without_duplicates(table: pa.Table, duplicates: Duplicates = "refuse") -> pa.Table:
    """Return the records of one arm with at most one per sample.

    Counting a sample twice would double its weight, and an average would hide a failure, so several
    runs of a sample are refused; "newest" selects the run that started last (of runs without a
    start time, the last one).

    Raises:
        ScoreError: a sample has several runs and `duplicates` is "refuse".

    >>> rows = [{"sample_id": "a", "status": "ok", "speedup": s, "min_t": 0.0} for s in (2.0, 3.0)]
    >>> without_duplicates(as_table(rows), "newest")["speedup"].to_pylist()
    [3.0]
    """
    ids = table["sample_id"].to_pylist()
    newest = dict.fromkeys(ids, -1)
    if len(newest) == len(ids):
        return table
    if duplicates == "refuse":
        counts = table["sample_id"].value_counts().to_pylist()
        repeated = [item["values"] for item in counts if item["counts"] > 1]
        raise ScoreError(
            f"{counted(len(repeated), 'sample')} with several runs, such as `{repeated[0]}`. A "
            "score counts each sample once. Filter the records, or keep the newest with "
            '`duplicates="newest"` (`graphnet score --duplicates newest`).'
        )
    starts = [start or "" for start in table["started_at"].to_pylist()]
    for index, sample_id in enumerate(ids):
        best = newest[sample_id]
        if best < 0 or starts[index] >= starts[best]:
            newest[sample_id] = index
    return table.take(pa.array(sorted(newest.values())))


@raises_only(ScoreError)
def split_by(table: pa.Table, column: str) -> dict[str, pa.Table]:
    """Group the records by the values of a string column, sorted; null becomes "unknown".

    >>> rows = [{"sample_id": "a", "status": "run_failed", "task": task} for task in ("nlp", "cv")]
    >>> list(split_by(as_table(rows), "task"))
    ['cv', 'nlp']
    """
    values = [value or "unknown" for value in table[column].to_pylist()]
    return {
        key: table.filter(pa.array([value == key for value in values]))
        for key in sorted(set(values))
    }
