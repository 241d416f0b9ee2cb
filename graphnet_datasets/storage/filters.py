"""Which rows to keep, by what their columns say."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..errors import RunError
from ..frameworks import framework_names
from ..sample.vocabulary import KINDS, PART_METHODS, TASKS
from ..suggestions import did_you_mean


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filters:
    """Which rows to keep; None keeps all, and of several values one has to match.

    `subtask` is what its model is for (`analysis.subtasks`). `tag` is one that a row has to have,
    such as `small`; of several, any. `kind` is what a sample is: a `graph`,
    a `subgraph`, a `joint` graph with its gradients. `family` is a family's hash, in full or its
    beginning; `method` how parts were found, which whole graphs were not. `limit` is shared out
    evenly where several names are given: of `cv` and `nlp` a limit of 6 takes the first three of
    each.

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
            (self.min_ops is None or row["num_ops"] >= self.min_ops)
            and (self.max_ops is None or row["num_ops"] <= self.max_ops)
            and (self.max_params is None or row["num_params"] <= self.max_params)
        )
