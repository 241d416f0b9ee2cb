"""Which rows to keep, by what their columns say."""

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
    """Which rows to keep; None keeps all, and of several values one has to match.

    `subtask` is what its model is for (`analysis.subtasks`). `tag` is one that a row has to have,
    such as `small`; of several, any. `kind` is what a sample is: a `graph`,
    a `subgraph`, a `joint` graph with its gradients. `family` is a family's hash, in full or its
    beginning; `method` how parts were found, which whole graphs were not. `limit` is shared out
    evenly where several names are given: of `cv` and `nlp` a limit of 6 takes the first three of
    each. `where` holds the filters that `load_dataset` takes (see `as_filters`).

    Raises:
        RunError: there is no such framework, task, kind or method.
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
            for each in getattr(self, name):
                if each not in accepted:
                    raise RunError(
                        f"There is no {name} `{each}`.{did_you_mean(each, accepted)} Choose one of "
                        f"{', '.join(accepted)}."
                    )

    def keeps(self, row: Mapping[str, Any]) -> bool:
        """Tell whether the filters keep a row; `limit` is not looked at."""
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
    """Return `Filters` for `Filters`, for the filters that `load_dataset` takes, or for None.

    Raises:
        SchemaError: a condition names an unknown column, or does not fit it.
        RunError: `filters` is something else.

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
    """Return the columns that `where` looks at; of an expression, all except for lists of structs.

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
