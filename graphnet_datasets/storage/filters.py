"""Filters of rows by their columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import RunError
from ..frameworks import framework_names
from ..sample.vocabulary import KINDS, PART_METHODS, TASKS
from ..schema.subgraphs import SUBGRAPHS_SCHEMA
from ..suggestions import did_you_mean
from .questions import check_columns, filter_columns, matches, without_empty_lists


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filters:
    """A filter of rows; None and empty fields keep all, and one of several values must match.

    `subtask` is the purpose of the model (`analysis.subtasks`). `tag` is a required tag, such as
    `small`; one of several suffices. `kind` is `graph`, `subgraph`, or `joint` (a graph with its
    gradients). `family` is a family's hash or a prefix of it. `method` is the method by which parts
    were found; whole graphs match any. `limit` is shared out evenly over several selected names:
    for `cv` and `nlp` a limit of 6 keeps the first three of each. `where` contains filters in the
    form of `load_dataset` (see `as_filters`).

    Raises:
        RunError: a framework, task, kind or method does not exist.
    """

    task: tuple[str, ...] = ()
    subtask: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    framework: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    family: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    min_ops: int | None = None
    max_ops: int | None = None
    max_params: int | None = None
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

    def keeps(self, row: Mapping[str, Any]) -> bool:
        """Return whether the filters keep a row; `limit` is ignored."""
        for name in ("task", "subtask", "framework", "kind", "source"):
            accepted = getattr(self, name)
            if accepted and row.get(name) not in accepted:
                return False
        if self.tag and not set(self.tag) & set(row.get("tags") or ()):
            return False
        if self.method and row.get("method") not in self.method:
            return False
        if self.family and not (row["family"] or "").startswith(self.family):
            return False
        return (
            (self.where is None or matches(self.where, row))
            and (self.min_ops is None or row["num_ops"] >= self.min_ops)
            and (self.max_ops is None or row["num_ops"] <= self.max_ops)
            and (self.max_params is None or row["num_params"] <= self.max_params)
        )


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
    """Return the columns used by `where`; for an expression, all but lists of structs.

    >>> columns_of(as_filters([("flops", "<", 1e9), ("tags", "contains", "small")]))
    ['flops', 'tags']
    """
    if filters.where is None:
        return []
    if isinstance(filters.where, pc.Expression):
        return [
            field.name
            for field in SUBGRAPHS_SCHEMA
            if not pa.types.is_list(field.type) or not pa.types.is_struct(field.type.value_type)
        ]
    return filter_columns(filters.where)
