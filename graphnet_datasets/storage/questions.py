"""What is asked of a dataset: config, split, columns and filters, checked before rows are read."""

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
from ..schema import SCHEMA_VERSION
from ..schema.subgraphs import SUBGRAPHS_SCHEMA
from ..suggestions import did_you_mean
from .remote import Url

_LARGEST = 2**63 - 1
CONTAINS = "contains"
"""The operator of a condition on a list of texts, beside those of Parquet's filters."""
_SPLIT_NAME = re.compile(r"\s*(\w+)\s*(?:\[.*\]\s*)?(?:\(\w+\))?\s*\Z")


def without_empty_lists(filters: Any) -> Any:
    """Return filters, or None where they are lists without any condition."""
    is_nothing = isinstance(filters, list | tuple) and not any(
        each for each in filters if not isinstance(each, list) or each
    )
    return None if is_nothing else filters


def fit_filters(filters: Any, schema: pa.Schema) -> Any:
    """Return filters as Parquet's reader takes them, their bounds of the kind of their columns.

    A bound such as `1e9` makes Arrow compare integers as floats, and fail where these cannot hold
    them: of a column of integers it becomes the whole number that separates the same values.

    >>> schema = pa.schema([("flops", pa.int64()), ("speedup", pa.float64())])
    >>> fit_filters([("flops", "<", 1e9), ("flops", ">", 2.5), ("speedup", ">", 2.5)], schema)
    [('flops', '<', 1000000000), ('flops', '>', 2), ('speedup', '>', 2.5)]

    Where one asks what a list contains, which Parquet's conditions cannot, they become an
    expression.

    >>> tags = pa.table({"id": ["a", "b"], "tags": [["small"], ["smaller"]]})
    >>> fitted = fit_filters([("tags", "contains", "small")], tags.schema)
    >>> tags.filter(fitted)["id"].to_pylist()
    ['a']
    """
    fitted = _fit(filters, schema)
    return _as_expression(fitted) if any(_asks_of_lists(each) for each in _flat(fitted)) else fitted


def list_contains(name: str, text: str) -> pc.Expression:
    """Return the condition that a column's list of texts has one that is the given text.

    >>> table = pa.table({"tags": [["a", "b"], ["ab"], [], None]})
    >>> table.filter(list_contains("tags", "b")).num_rows
    1
    """
    # Of functions of lists expressions have few: the texts are joined, each with an end of its own.
    column, end = pc.field(name), "\0"
    joined: Any = pc.binary_join(column, pc.scalar(end))  # pyright: ignore
    pattern = rf"(^|\x00){re.escape(text)}(\x00|$)"
    return (pc.list_value_length(column) > 0) & pc.match_substring_regex(joined, pattern)  # pyright: ignore


def filter_columns(filters: Any) -> list[str]:
    """Return the names of the columns that filters in lists compare, each once."""
    return list(dict.fromkeys(condition[0] for condition in _flat(filters)))


def matches(filters: Any, row: Mapping[str, Any]) -> bool:
    """Return whether filters keep a row; a comparison with a missing value is false.

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
        return [_fit(each, schema) for each in filters]
    if not _is_condition(filters):
        return filters
    name, comparison, value = filters
    place = schema.get_field_index(name)
    if place < 0 or not pa.types.is_integer(schema.field(place).type):
        return filters
    if isinstance(value, list | tuple | set):
        return name, comparison, [_whole(each, "=") for each in value]
    return name, comparison, _whole(value, comparison)


def _flat(filters: Any) -> list[Any]:
    """Return the conditions of filters that are lists, whether they have alternatives or not."""
    alternatives = filters if isinstance(filters, list) else []
    return [
        condition
        for each in alternatives
        for condition in ([each] if isinstance(each, tuple) else each)
    ]


def _asks_of_lists(condition: Any) -> bool:
    return _is_condition(condition) and condition[1] == CONTAINS


def _as_expression(filters: Any) -> pc.Expression:
    """Return filters that are lists as one expression."""
    if all(isinstance(each, tuple) for each in filters):
        filters = [filters]
    alternatives = [[_condition(each) for each in every] for every in filters if every]
    every = [functools.reduce(operator.and_, each) for each in alternatives]
    return functools.reduce(operator.or_, every)


def _condition(given: Any) -> pc.Expression:
    if not _asks_of_lists(given):
        return pq.filters_to_expression([given])
    if not isinstance(given[2], str):
        raise TypeError(f"`{CONTAINS}` takes one text, not {given[2]!r}")
    return list_contains(given[0], given[2])


def _is_condition(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 3 and isinstance(given[0], str)


def _whole(value: Any, comparison: str) -> Any:
    """Return the integer that a float stands for as a bound; else what it is."""
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
    """Return the error that says which configs there are."""
    names = list(names)
    return DatasetNotFoundError(
        f"`{place}` has no config `{config}`.{did_you_mean(str(config), names)} Its configs are "
        f"{', '.join(names)}."
    )


def other_version(place: Path | Url | str, version: object) -> FormatVersionError:
    """Return the error that says that a table has another format version than is read here."""
    return FormatVersionError(
        f"`{place}` has format version {version}; this library reads {SCHEMA_VERSION}. Install the "
        f"release of `graphnet-datasets` that reads version {version}, or name a revision of "
        f"version {SCHEMA_VERSION}."
    )


def split_text(split: Any) -> str | None:
    """Return as text what `datasets` takes for a split: text, its own names, a read instruction.

    Raises:
        DatasetNotFoundError: it is something else.

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
        f"There is no split {split!r}. A split is text such as `train`, `train[:10]` or "
        "`train+test`, or a list of these."
    )


def check_split(split: str | None, names: Sequence[str], place: Path | Url | str) -> None:
    """Refuse a split that does not exist; what stands in brackets is for `datasets` to check."""
    for part in split.split("+") if split is not None else ():
        found = _SPLIT_NAME.match(part)
        if found and found[1] != "all" and found[1] not in names:
            raise DatasetNotFoundError(
                f"`{place}` has no split `{found[1]}`.{did_you_mean(found[1], names)} Its splits "
                f"are {', '.join(names)}."
            )


def check_columns(
    schema: pa.Schema, filters: Any, columns: Sequence[str] | None, place: Path | Url | str
) -> None:
    """Refuse what asks for columns that do not exist, before anything is read."""
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
            f"The filter {filters!r} does not fit the columns of `{place}`: {reason}. A filter "
            "compares a top-level scalar with a value of its type, or asks what a list of texts "
            'contains: `("tags", "contains", "small")`; for the rest there is `dataset.filter`.'
        ) from error
