"""A small subset of a dataset for the diagnosis of a compiler: graphs, parts, known bugs.

Whole graphs are balanced over tasks and size classes. Within a task and class, graphs that cover
the most operators and families come first. Parts are the most frequent fusible parts of each task.
The known bugs are those of the compiler, or verified bugs of several compilers for one without
known bugs. Every prefix of the subset has about the same mixture, so that a run that is stopped
early still represents the dataset.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import itertools
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import DatasetNotFoundError, RunError
from ..schema.tables import COMPILER_BUGS
from ..storage.filters import Filters
from ..storage.selection import choose, no_match
from ..subsets import cover
from ..terminal import counted

OPS_LIMITS = (20, 60, 150)
"""Upper bounds of the size classes in operators; larger graphs take too long to compile."""
MAX_FLOPS = 5e9
"""Maximum number of FLOPs of one call, about 0.1 s on two cores."""
MAX_PARAMS = 20_000_000
PARTS = "fusible"
MAX_PART_OPS = 20
PATTERN = ("graph", "graph", "part", "graph", "graph", "bug")
"""Kinds of samples in the order in which they alternate."""


@dataclasses.dataclass(frozen=True)
class Subset:
    """Ids of samples in the order in which they run, and the number of graphs to choose from."""

    graphs: tuple[str, ...]
    parts: tuple[str, ...]
    bugs: tuple[str, ...]
    num_tasks: int
    num_graphs: int

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids; the three kinds alternate as in `PATTERN`."""
        waiting = {
            "graph": iter(self.graphs),
            "part": iter(self.parts),
            "bug": iter(self.bugs),
        }
        total = len(self.graphs) + len(self.parts) + len(self.bugs)
        turns = (itertools.islice(waiting[kind], 1) for kind in itertools.cycle(PATTERN))
        return tuple(itertools.islice(itertools.chain.from_iterable(turns), total))

    def __str__(self) -> str:
        kinds = [
            f"{counted(len(self.graphs), 'whole graph')} of {counted(self.num_tasks, 'task')}",
            counted(len(self.parts), "frequent part") if self.parts else "",
            counted(len(self.bugs), "known bug") if self.bugs else "",
        ]
        return ", ".join(kind for kind in kinds if kind)


def choose_subset(
    compiler: str,
    count: int,
    *,
    framework: str = "torch",
    dataset: str | os.PathLike[str] = "graphnet",
) -> Subset:
    """Choose `count` samples for the diagnosis of a compiler: two thirds are whole graphs.

    If all graphs exceed the limits of this module, the choice is among all of them. The configs of
    parts and bugs are optional.

    Raises:
        RunError: `count` is below 1.
        DatasetNotFoundError: The dataset does not exist or has no graph of the framework.

    >>> subset = choose_subset("inductor", 12)
    >>> len(subset.graphs), len(subset.parts), len(subset.bugs), subset.num_tasks
    (8, 2, 2, 6)
    """
    if count < 1:
        raise RunError(f"The number of samples is {count}, but at least 1 is needed.")
    filters = Filters(framework=(framework,))
    bounded = dataclasses.replace(
        filters, max_ops=OPS_LIMITS[-1], max_flops=MAX_FLOPS, max_params=MAX_PARAMS
    )
    all_graphs = choose(str(dataset), filters, dataset=dataset)
    small_graphs = choose(str(dataset), bounded, dataset=dataset)
    columns = ("num_ops", "family", "task", "op_histogram")
    rows = [*(small_graphs if len(small_graphs) else all_graphs).stream(columns)]
    if not rows:
        raise no_match(str(dataset), filters, dataset=dataset)
    num_bugs = PATTERN.count("bug") * count // len(PATTERN)
    num_parts = PATTERN.count("part") * count // len(PATTERN)
    bugs = [*itertools.islice(_bugs(compiler, filters, dataset), num_bugs)]
    parts = [*itertools.islice(_parts(filters, dataset), num_parts)]
    graphs = [*itertools.islice(_balanced(rows), count - len(bugs) - len(parts))]
    tasks = {row["id"]: row["task"] for row in rows}
    return Subset(
        graphs=tuple(graphs),
        parts=tuple(parts),
        bugs=tuple(bugs),
        num_tasks=len({tasks[name] for name in graphs}),
        num_graphs=len(all_graphs),
    )


def _balanced(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield ids so that tasks and size classes alternate."""
    cells: dict[tuple[str, int], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        size = min(bisect.bisect_left(OPS_LIMITS, row["num_ops"] or 0), len(OPS_LIMITS) - 1)
        cells[str(row["task"]), size].append(row)
    queues = {cell: iter(_by_coverage(cells[cell])) for cell in sorted(cells)}
    tasks = sorted({task for task, _ in queues})
    sizes = range(len(OPS_LIMITS))
    for turn in itertools.count():
        ids = []
        for place, task in enumerate(tasks):
            # The next size class, or another one if its graphs have all been chosen.
            order = [(turn + place + step) % len(sizes) for step in sizes]
            queue = itertools.chain.from_iterable(queues.get((task, size), ()) for size in order)
            ids += itertools.islice(queue, 1)
        if not ids:
            return
        yield from ids


def _by_coverage(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the ids in the order in which they cover operators and families."""
    with_ops = ({**row, "ops": row.get("op_histogram") or ()} for row in rows)
    return cover(with_ops, len(rows), ("operators", "families")).ids


def _parts(filters: Filters, dataset: str | os.PathLike[str]) -> Iterator[str]:
    """Yield ids of parts: the tasks alternate, and the most frequent parts come first."""
    bounded = dataclasses.replace(filters, min_ops=2, max_ops=MAX_PART_OPS, max_flops=MAX_FLOPS)
    rows = _rows_of(PARTS, bounded, dataset, ("task", "num_ops", "num_occurrences"))
    rows.sort(key=lambda row: (-(row["num_occurrences"] or 0), row["num_ops"], row["id"]))
    return _alternating((row["task"], row["id"]) for row in rows)


def _bugs(compiler: str, filters: Filters, dataset: str | os.PathLike[str]) -> Iterator[str]:
    """Yield ids of known bugs: those of the compiler, else verified ones of all compilers."""
    columns = ("bug_compiler", "is_verified", "num_ops")
    rows = _rows_of(COMPILER_BUGS.name, filters, dataset, columns)
    own = [row for row in rows if row["bug_compiler"] == compiler]
    rows = own or [row for row in rows if row["is_verified"]]
    rows.sort(key=lambda row: (not row["is_verified"], row["num_ops"], row["id"]))
    return _alternating((row["bug_compiler"], row["id"]) for row in rows)


def _rows_of(
    config: str, filters: Filters, dataset: str | os.PathLike[str], columns: Sequence[str]
) -> list[dict[str, Any]]:
    """Return some columns of the rows of an optional config."""
    with contextlib.suppress(DatasetNotFoundError):
        return [*choose(config, filters, dataset=dataset).stream(columns)]
    return []


def _alternating(items: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield the second elements so that the first ones alternate.

    >>> [*_alternating([("a", "1"), ("a", "2"), ("b", "3")])]
    ['1', '3', '2']
    """
    groups: dict[str, list[str]] = {}
    for group, name in items:
        groups.setdefault(str(group), []).append(name)
    for row in itertools.zip_longest(*(groups[group] for group in sorted(groups))):
        yield from (name for name in row if name is not None)
