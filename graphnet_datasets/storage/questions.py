"""Validation of the requested config, split, columns and filters before rows are read."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import DatasetNotFoundError, FormatVersionError, SchemaError
from ..schema import CONFIGS, SCHEMA_VERSION
from ..schema.subgraphs import SUBGRAPHS_SCHEMA
from ..suggestions import did_you_mean
from .remote import Url

_LARGEST = 2**63 - 1
CONTAINS = "contains"
"""The operator of a condition on a list of strings, in addition to those of Parquet."""
_SPLIT_NAME = re.compile(r"\s*(\w+)\s*(?:\[.*\]\s*)?(?:\(\w+\))?\s*\Z")


def without_empty_lists(filters: Any) -> Any:
    """Return filters, or None if they are lists without conditions."""
    is_nothing = isinstance(filters, list | tuple) and not any(
        condition for condition in filters if not isinstance(condition, list) or condition
    )
    return None if is_nothing else filters


def fit_filters(filters: Any, schema: pa.Schema) -> Any:
    """Convert filters for Parquet's reader, with bounds of the types of their columns.

    For a bound such as `1e9`, Arrow would compare integers as floats and fail on large integers.
    For integer columns such a bound becomes the integer that separates the same values.

    >>> schema = pa.schema([("flops", pa.int64()), ("speedup", pa.float64())])
    >>> fit_filters([("flops", "<", 1e9), ("flops", ">", 2.5), ("speedup", ">", 2.5)], schema)
    [('flops', '<', 1000000000), ('flops', '>', 2), ('speedup', '>', 2.5)]

    Conditions on the contents of lists, which Parquet does not support, become an expression.

    >>> tags = pa.table({"id": ["a", "b"], "tags": [["small"], ["smaller"]]})
    >>> fitted = fit_filters([("tags", "contains", "small")], tags.schema)
    >>> tags.filter(fitted)["id"].to_pylist()
    ['a']
    """
    fitted = _fit(filters, schema)
    return (
        _as_expression(fitted)
        if any(_asks_of_lists(condition) for condition in _flat(fitted))
        else fitted
    )


def list_contains(name: str, text: str) -> pc.Expression:
    """Return the condition that a column's list of strings contains a string.

    >>> table = pa.table({"tags": [["a", "b"], ["ab"], [], None]})
    >>> table.filter(list_contains("tags", "b")).num_rows
    1
    """
    # Expressions have few list functions, so the strings are joined, each with a terminator.
    column, end = pc.field(name), "\0"
    joined: Any = pc.binary_join(column, pc.scalar(end))  # pyright: ignore
    pattern = rf"(^|\x00){re.escape(text)}(\x00|$)"
    return (pc.list_value_length(column) > 0) & pc.match_substring_regex(joined, pattern)  # pyright: ignore


def filter_columns(filters: Any) -> list[str]:
    """Return the distinct names of the columns that filters in list form refer to."""
    return list(dict.fromkeys(condition[0] for condition in _flat(filters)))


def matches(filters: Any, row: Mapping[str, Any]) -> bool:
    """Return whether filters keep a row; comparisons with missing values are false.

    >>> matches([[("num_ops", "<", 20)], [("task", "in", ["cv"])]], {"num_ops": 30, "task": "cv"})
    True
    """
    if isinstance(filters, pc.Expression):
        schema = pa.schema([field for field in SUBGRAPHS_SCHEMA if field.name in row])
        values = {name: row[name] for name in schema.names}
        return pa.Table.from_pylist([values], schema).filter(filters).num_rows == 1
    alternatives = [filters] if all(isinstance(part, tuple) for part in filters) else filters
    return any(
        all(_holds(row.get(name), comparison, value) for name, comparison, value in conditions)
        for conditions in alternatives
        if conditions
    )


_COMPARISONS = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _holds(cell: Any, comparison: str, value: Any) -> bool:
    if cell is None:
        return False
    if comparison == CONTAINS:
        return value in cell
    if comparison in ("in", "not in"):
        return (cell in value) == (comparison == "in")
    return bool(_COMPARISONS[comparison](cell, value))


def _fit(filters: Any, schema: pa.Schema) -> Any:
    if isinstance(filters, list | tuple) and not _is_condition(filters):
        return [_fit(part, schema) for part in filters]
    if not _is_condition(filters):
        return filters
    name, comparison, value = filters
    place = schema.get_field_index(name)
    if place < 0 or not pa.types.is_integer(schema.field(place).type):
        return filters
    if isinstance(value, list | tuple | set):
        return name, comparison, [_whole(item, "=") for item in value]
    return name, comparison, _whole(value, comparison)


def _flat(filters: Any) -> list[Any]:
    """Return the conditions of filters in list form, with or without alternatives."""
    alternatives = filters if isinstance(filters, list) else []
    return [
        condition
        for alternative in alternatives
        for condition in ([alternative] if isinstance(alternative, tuple) else alternative)
    ]


def _asks_of_lists(condition: Any) -> bool:
    return _is_condition(condition) and condition[1] == CONTAINS


def _as_expression(filters: Any) -> pc.Expression:
    """Return filters in list form as one expression."""
    if all(isinstance(part, tuple) for part in filters):
        filters = [filters]
    alternatives = [
        [_condition(condition) for condition in alternative]
        for alternative in filters
        if alternative
    ]
    conjunctions = [functools.reduce(operator.and_, conditions) for conditions in alternatives]
    return functools.reduce(operator.or_, conjunctions)


def _condition(condition: Any) -> pc.Expression:
    if not _asks_of_lists(condition):
        return pq.filters_to_expression([condition])
    if not isinstance(condition[2], str):
        raise TypeError(f"`{CONTAINS}` needs a string, got {condition[2]!r}")
    return list_contains(condition[0], condition[2])


def _is_condition(condition: Any) -> bool:
    return isinstance(condition, tuple) and len(condition) == 3 and isinstance(condition[0], str)


def _whole(value: Any, comparison: str) -> Any:
    """Convert a float bound to the equivalent integer; return other bounds unchanged."""
    if not isinstance(value, float) or math.isnan(value):
        return value
    if abs(value) >= _LARGEST:
        return _LARGEST if value > 0 else -_LARGEST
    if value.is_integer():
        return int(value)
    if comparison in ("<", ">="):
        return math.ceil(value)
    return math.floor(value) if comparison in ("<=", ">") else value


def no_config(
    place: Path | Url | str, config: str | None, names: Iterable[str]
) -> DatasetNotFoundError:
    """Return the error for an unknown config, which lists the existing configs."""
    names = list(names)
    registered = CONFIGS.get(config or "")
    if registered is not None and registered.command:
        return DatasetNotFoundError(
            f"`{place}` has no `{config}` ({registered.description}). Create them with "
            f"`{registered.command}`."
        )
    is_path = config is not None and Path(config).exists()
    hint = f" To read this file or folder, use `--dataset ./{config}`." if is_path else ""
    return DatasetNotFoundError(
        f"`{place}` has no config `{config}`.{did_you_mean(str(config), names)} Its configs are "
        f"{', '.join(names)}.{hint}"
    )


def other_version(place: Path | Url | str, version: object) -> FormatVersionError:
    """Return the error for a table with an unsupported format version."""
    return FormatVersionError(
        f"`{place}` has format version {version}; this library reads {SCHEMA_VERSION}. Install the "
        f"release of `graphnet-datasets` that reads version {version}, or pass a revision of "
        f"version {SCHEMA_VERSION}."
    )


def split_text(split: Any) -> str | None:
    """Convert a split, as accepted by `datasets`, to a string.

    Raises:
        DatasetNotFoundError: `split` has an unsupported type.

    >>> import datasets
    >>> split_text(datasets.Split.TRAIN), split_text(datasets.ReadInstruction("test", to=5))
    ('train', 'test[:5]')
    """
    import datasets

    if split is None or isinstance(split, str):
        return split
    if isinstance(split, datasets.ReadInstruction):
        return split.to_spec()
    if isinstance(split, datasets.NamedSplit):
        return str(split)
    raise DatasetNotFoundError(
        f"There is no split {split!r}. A split is a string such as `train`, `train[:10]` or "
        "`train+test`, or a list of such strings."
    )


def check_split(split: str | None, names: Sequence[str], place: Path | Url | str) -> None:
    """Raise an error for an unknown split; `datasets` checks the part in brackets."""
    for part in split.split("+") if split is not None else ():
        match = _SPLIT_NAME.match(part)
        if match and match[1] != "all" and match[1] not in names:
            raise DatasetNotFoundError(
                f"`{place}` has no split `{match[1]}`.{did_you_mean(match[1], names)} Its splits "
                f"are {', '.join(names)}."
            )


def check_columns(
    schema: pa.Schema, filters: Any, columns: Sequence[str] | None, place: Path | Url | str
) -> None:
    """Raise an error for unknown columns or invalid filters, before reading any data."""
    flat = _flat(filters)
    for name in (*(columns or ()), *(condition[0] for condition in flat)):
        if name not in schema.names:
            raise SchemaError(
                f"`{place}` has no column `{name}`.{did_you_mean(name, schema.names)} Its columns "
                f"are {', '.join(schema.names)}."
            )
    if filters is None:
        return
    try:
        expression = _as_expression(filters) if flat else filters
        schema.empty_table().filter(expression)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise SchemaError(
            f"The filter {filters!r} does not match the columns of `{place}`: {reason}. A filter "
            "compares a top-level scalar with a value of its type, or checks whether a list of "
            'strings contains one: `("tags", "contains", "small")`. For other filters use '
            "`dataset.filter`."
        ) from error
