"""What is asked of a dataset: config, split, columns and filters, checked before rows are read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DatasetNotFoundError, FormatVersionError, SchemaError
from ..schema import SCHEMA_VERSION
from ..suggestions import did_you_mean
from .remote import Url

_LARGEST = 2**63 - 1
_SPLIT_NAME = re.compile(r"\s*(\w+)\s*(?:\[.*\]\s*)?(?:\(\w+\))?\s*\Z")


def without_empty_lists(filters: Any) -> Any:
    """Return filters, or None where they are lists without any condition."""
    is_nothing = isinstance(filters, list | tuple) and not any(
        each for each in filters if not isinstance(each, list) or each
    )
    return None if is_nothing else filters


def fit_filters(filters: Any, schema: pa.Schema) -> Any:
    """Return filters whose bounds are numbers of the kind of their columns.

    A bound such as `1e9` makes Arrow compare integers as floats, and fail where these cannot hold
    them: of a column of integers it becomes the whole number that separates the same values.

    >>> schema = pa.schema([("flops", pa.int64()), ("speedup", pa.float64())])
    >>> fit_filters([("flops", "<", 1e9), ("flops", ">", 2.5), ("speedup", ">", 2.5)], schema)
    [('flops', '<', 1000000000), ('flops', '>', 2), ('speedup', '>', 2.5)]
    """
    if isinstance(filters, list | tuple) and not _is_condition(filters):
        return [fit_filters(each, schema) for each in filters]
    if not _is_condition(filters):
        return filters
    name, operator, value = filters
    place = schema.get_field_index(name)
    if place < 0 or not pa.types.is_integer(schema.field(place).type):
        return filters
    if isinstance(value, list | tuple | set):
        return name, operator, [_whole(each, "=") for each in value]
    return name, operator, _whole(value, operator)


def _is_condition(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 3 and isinstance(given[0], str)


def _whole(value: Any, operator: str) -> Any:
    """Return the integer that a float stands for as a bound; else what it is."""
    if not isinstance(value, float) or math.isnan(value):
        return value
    if abs(value) >= _LARGEST:
        return _LARGEST if value > 0 else -_LARGEST
    if value.is_integer():
        return int(value)
    if operator in ("<", ">="):
        return math.ceil(value)
    return math.floor(value) if operator in ("<=", ">") else value


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
    alternatives = filters if isinstance(filters, list) else []
    flat = [
        condition
        for each in alternatives
        for condition in ([each] if isinstance(each, tuple) else each)
    ]
    for name in (*(columns or ()), *(condition[0] for condition in flat)):
        if name not in schema.names:
            raise SchemaError(
                f"`{place}` has no column `{name}`.{did_you_mean(name, schema.names)} Its columns "
                f"are {', '.join(schema.names)}."
            )
    if filters is None:
        return
    try:
        expression = pq.filters_to_expression(filters) if flat else filters
        schema.empty_table().filter(expression)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise SchemaError(
            f"The filter {filters!r} does not fit the columns of `{place}`: {reason}. A filter "
            "compares a top-level scalar with a value of its type; for the rest there is "
            "`dataset.filter`."
        ) from error
