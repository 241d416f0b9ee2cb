"""Filters of rows by their columns."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import RunError
from ..frameworks import framework_names
from ..sample.vocabulary import KINDS, PART_METHODS, TASKS
from ..schema.subgraphs import SUBGRAPHS_SCHEMA
from ..suggestions import did_you_mean
from .questions import check_columns, filter_columns, matches, without_empty_lists


@dataclasses.dataclass(frozen=True)
class _Condition:
    """The column that a filter compares, and the comparison of its cell with the filter's value."""

    column: str
    holds: Callable[[Any, Any], bool]
    is_bound: bool = False


def _is_in(cell: Any, values: Sequence[Any]) -> bool:
    return cell in values


def _is_at_least(cell: Any, bound: float) -> bool:
    return cell is not None and cell >= bound


def _is_at_most(cell: Any, bound: float) -> bool:
    return cell is not None and cell <= bound


_CONDITIONS = {
    "name": _Condition(
        "id", lambda cell, texts: any(text.lower() in cell.lower() for text in texts)
    ),
    "task": _Condition("task", _is_in),
    "subtask": _Condition("subtask", _is_in),
    "tag": _Condition("tags", lambda cell, tags: not set(tags).isdisjoint(cell or ())),
    "framework": _Condition("framework", _is_in),
    "kind": _Condition("kind", _is_in),
    "source": _Condition("source", _is_in),
    "family": _Condition("family", lambda cell, prefixes: (cell or "").startswith(prefixes)),
    "method": _Condition("method", _is_in),
    "dtype": _Condition("dtype", _is_in),
    "license": _Condition("license", _is_in),
    "is_dynamic": _Condition("is_dynamic", lambda cell, is_dynamic: bool(cell) == is_dynamic),
    "min_ops": _Condition("num_ops", _is_at_least, is_bound=True),
    "max_ops": _Condition("num_ops", _is_at_most, is_bound=True),
    "min_params": _Condition("num_params", _is_at_least, is_bound=True),
    "max_params": _Condition("num_params", _is_at_most, is_bound=True),
    "min_flops": _Condition("flops", _is_at_least, is_bound=True),
    "max_flops": _Condition("flops", _is_at_most, is_bound=True),
    "min_occurrences": _Condition("num_occurrences", _is_at_least, is_bound=True),
}
"""The filters of single columns. Filters that are not bounds take several values."""

_OPTIONS = {"method": "--found-by"}
"""Command-line options whose names differ from the filter's."""

MAX_VALUES_NAMED = 5
MAX_CHOICES_NAMED = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filters:
    """A filter of rows. None and empty fields keep all rows; of several values, one must match.

    `name` is text in the sample's id, in any case. `subtask` is the purpose of the model
    (`analysis.subtasks`). `tag` is a required tag, such as `small`. `kind` is `graph`, `subgraph`,
    or `joint` (a graph with its gradients). `family` is a family's hash or a prefix of it. `method`
    is the method by which parts were found, and `min_occurrences` the least number of times that a
    part occurs; whole graphs have neither. `dtype` is the dtype of most weights, and `license` the
    recorded license. `is_dynamic` keeps graphs with (True) or without (False) symbolic dimensions.
    `limit` is divided evenly among several selected names: for `cv` and `nlp`, a limit of 6 keeps
    the first three of each. `where` contains filters in the form of `load_dataset` (see
    `as_filters`).

    Raises:
        RunError: a framework, task, kind or method does not exist.

    >>> Filters(name=("ResNet",), max_ops=99).keeps({"id": "torch/resnet-18", "num_ops": 70})
    True
    """

    name: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    subtask: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    framework: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    dtype: tuple[str, ...] = ()
    license: tuple[str, ...] = ()
    is_dynamic: bool | None = None
    min_ops: int | None = None
    max_ops: int | None = None
    min_params: int | None = None
    max_params: int | None = None
    min_flops: float | None = None
    max_flops: float | None = None
    min_occurrences: int | None = None
    limit: int | None = None
    where: Any = None

    def __post_init__(self) -> None:
        for name, accepted in (
            ("framework", framework_names()),
            ("task", TASKS),
            ("kind", KINDS),
            ("method", PART_METHODS),
        ):
            for value in getattr(self, name):
                if value not in accepted:
                    raise RunError(
                        f"There is no {name} `{value}`.{did_you_mean(value, accepted)} Choose one "
                        f"of {', '.join(accepted)}."
                    )

    @property
    def active(self) -> list[str]:
        """The names of the filters that can exclude a row; `limit` is not among them."""
        names = [name for name in _CONDITIONS if getattr(self, name) not in (None, ())]
        return [*names, "where"] if self.where is not None else names

    def failing(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the filters that exclude a row.

        >>> Filters(task=("cv",), max_ops=9).failing({"task": "cv", "num_ops": 12})
        ('max_ops',)
        """
        return tuple(
            name
            for name in self.active
            if not (
                matches(self.where, row)
                if name == "where"
                else _CONDITIONS[name].holds(row.get(_CONDITIONS[name].column), getattr(self, name))
            )
        )

    def keeps(self, row: Mapping[str, Any]) -> bool:
        """Return whether the filters keep a row; `limit` is ignored."""
        return not self.failing(row)

    def columns(self) -> dict[str, str]:
        """Return the column that each active filter compares, except for those of `where`.

        >>> Filters(method=("rules",), max_ops=9).columns()
        {'method': 'method', 'max_ops': 'num_ops'}
        """
        return {name: _CONDITIONS[name].column for name in self.active if name != "where"}

    def describe(self, names: Iterable[str]) -> str:
        """Return some of the filters as options of the command line.

        >>> Filters(method=("rules",), max_flops=1e9, is_dynamic=False).describe(
        ...     ["method", "max_flops", "is_dynamic"])
        '--found-by rules --static --max-flops 1e+09'
        """
        chosen = set(names)
        return " ".join(self._describe_one(name) for name in self.active if name in chosen)

    def _describe_one(self, name: str) -> str:
        value = getattr(self, name)
        if name == "where":
            return f"filters={value!r}"[:200]
        if name == "is_dynamic":
            return "--dynamic" if value else "--static"
        option = option_of(name)
        if isinstance(value, tuple):
            return " ".join(f"{option} {part}" for part in value)
        return f"{option} {_short(value)}"


def option_of(name: str) -> str:
    """Return the option of the command line for a filter.

    >>> option_of("min_ops"), option_of("method")
    ('--min-ops', '--found-by')
    """
    return _OPTIONS.get(name, f"--{name.replace('_', '-')}")


def nearest_choices(filters: Filters, rows: Iterable[Mapping[str, Any]], rows_name: str) -> str:
    """Return sentences on how to loosen filters that keep none of the rows.

    They are about the rows that the fewest filters exclude. They name these filters, the number of
    rows without them, and values that keep some of these rows.

    >>> rows = [{"task": "cv", "num_ops": 12}, {"task": "cv", "num_ops": 30}]
    >>> nearest_choices(Filters(task=("cv",), max_ops=9), rows, "samples")
    'Without `--max-ops 9`, 2 samples remain; the nearest is `--max-ops 12`.'
    """
    near: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        near.setdefault(filters.failing(row), []).append(row)
    if not near:
        return ""
    fewest = min(map(len, near))
    choices = [(names, group) for names, group in near.items() if len(names) == fewest]
    choices.sort(key=lambda choice: -len(choice[1]))
    # A filter that excludes every row may be misspelled.
    doubtful = frozenset.intersection(*map(frozenset, near))
    return " ".join(
        _describe_choice(filters, names, group, rows_name, doubtful)
        for names, group in choices[:MAX_CHOICES_NAMED]
    )


def _describe_choice(
    filters: Filters,
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    rows_name: str,
    doubtful: Collection[str],
) -> str:
    number = f"{len(rows)} {rows_name if len(rows) > 1 else rows_name.removesuffix('s')}"
    remain = "remain" if len(rows) > 1 else "remains"
    if not names:
        return f"{number} {remain}."
    sentence = f"Without `{filters.describe(names)}`, {number} {remain}"
    if len(names) > 1 or names[0] in ("where", "family", "is_dynamic"):
        return f"{sentence}."
    (name,) = names
    condition = _CONDITIONS[name]
    cells = [row.get(condition.column) for row in rows]
    if condition.is_bound:
        known_cells = [cell for cell in cells if cell is not None]
        if not known_cells:
            return f"{sentence}, where `{condition.column}` is unknown."
        nearest = max(known_cells) if name.startswith("min_") else min(known_cells)
        return f"{sentence}; the nearest is `{option_of(name)} {nearest}`."
    counts = collections.Counter(
        value for cell in cells for value in (cell if isinstance(cell, list) else [cell]) if value
    )
    if not counts:
        return f"{sentence}, where `{condition.column}` is empty."
    values = getattr(filters, name) if name in doubtful else ()
    hints = "".join(dict.fromkeys(did_you_mean(value, counts) for value in values))
    if name == "name":
        return f"{sentence}.{hints}"
    listed = ", ".join(
        f"`{value}` ({count})" for value, count in counts.most_common(MAX_VALUES_NAMED)
    )
    if len(counts) <= MAX_VALUES_NAMED:
        return f"{sentence}, with {listed}."
    return f"{sentence}, with {listed}, and others.{hints}"


def _short(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def as_filters(filters: Any) -> Filters:
    """Convert `Filters`, filters in the form of `load_dataset`, or None to `Filters`.

    Raises:
        SchemaError: a condition refers to an unknown column, or does not match its type.
        RunError: `filters` has another type.

    >>> as_filters([("num_ops", "<", 20)]).keeps({"num_ops": 7})
    True
    """
    if isinstance(filters, Filters):
        return filters
    if filters is not None and not isinstance(filters, list | pc.Expression):
        raise RunError(
            f"`filters={filters!r}`"[:200] + " is not a filter. Pass a list of conditions as to "
            '`load_dataset`, `[("num_ops", "<", 20)]`, or `Filters(max_ops=19)`.'
        )
    where = without_empty_lists(filters)
    if where is None:
        return Filters()
    check_columns(SUBGRAPHS_SCHEMA, where, None, "graphs")
    return Filters(where=where)


def columns_of(filters: Filters) -> list[str]:
    """Return the columns used by filters; for an expression in `where`, all but lists of structs.

    >>> columns_of(as_filters([("flops", "<", 1e9), ("tags", "contains", "small")]))
    ['flops', 'tags']
    """
    columns = list(filters.columns().values())
    if isinstance(filters.where, pc.Expression):
        columns += [
            field.name
            for field in SUBGRAPHS_SCHEMA
            if not pa.types.is_list(field.type) or not pa.types.is_struct(field.type.value_type)
        ]
    elif filters.where is not None:
        columns += filter_columns(filters.where)
    return list(dict.fromkeys(columns))
