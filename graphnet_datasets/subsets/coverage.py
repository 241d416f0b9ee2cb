"""The samples that cover most of what a dataset has: operators, shapes, families.

The share that is covered is submodular: a sample adds no more to a larger choice than to a smaller
one. So the greedy choice reaches at least 1 - 1/e of the best one of that size (Nemhauser, Wolsey
and Fisher, "An analysis of approximations for maximizing submodular set functions", 1978), and what
a sample was worth once bounds what it is worth now (Minoux, "Accelerated greedy algorithms", 1978):
only those at the head of a heap are looked at again.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import RunError
from ..suggestions import did_you_mean

KINDS: Mapping[str, str] = {
    "operators": "operators, by name",
    "shapes": "operators with the dtypes and shapes that they take and give",
    "families": "families of models",
    "tasks": "tasks",
    "dtypes": "dtypes of inputs and weights",
    "sources": "sources",
}
"""What can be covered."""
DEFAULT_KINDS = ("operators", "shapes", "families")
_COLUMNS = {"families": "family", "tasks": "task", "sources": "source"}


@dataclasses.dataclass(frozen=True)
class Covering:
    """Samples in the order in which they were chosen, and what the first so many of them cover.

    `shares` has for each kind the share that is covered after each of them, `sizes` how many
    things of the kind there are, and `num_samples` how many samples there were to choose from.
    """

    ids: tuple[str, ...]
    shares: Mapping[str, tuple[float, ...]]
    sizes: Mapping[str, int]
    num_samples: int

    def __str__(self) -> str:
        lines = [f"{len(self.ids)} of {self.num_samples} samples cover:"]
        for kind, share in self.shares.items():
            size = self.sizes[kind]
            covered = round(share[-1] * size) if share else 0
            lines.append(f"  {covered} of {size} {kind} ({covered / max(size, 1):.1%})")
        return "\n".join(lines)


def cover(
    rows: Sequence[Mapping[str, Any]], count: int, kinds: Sequence[str] = DEFAULT_KINDS
) -> Covering:
    """Choose the `count` rows of `graphs` that cover most, the next one always by what it adds.

    What counts is the mean over the kinds of the share that is covered, so that a kind with many
    things does not outweigh one with few. Of rows that add the same, the one with fewer operators
    is taken, then the one that comes first by id: the same rows give the same choice, in whatever
    order they come. Rows that add nothing are taken too, until there are `count`.

    Raises:
        RunError: a kind is unknown, or `count` is below 1.

    >>> rows = [
    ...     {"id": "a", "framework": "torch", "num_ops": 2, "family": "x",
    ...      "ops": [{"target": "relu"}, {"target": "exp"}]},
    ...     {"id": "b", "framework": "torch", "num_ops": 1, "family": "y",
    ...      "ops": [{"target": "exp"}]},
    ...     {"id": "c", "framework": "torch", "num_ops": 1, "family": "x",
    ...      "ops": [{"target": "relu"}]},
    ... ]
    >>> found = cover(rows, 2, ("operators", "families"))
    >>> found.ids, found.shares["operators"]
    (('a', 'b'), (1.0, 1.0))
    """
    if count < 1:
        raise RunError(f"{count} samples cannot be chosen; choose at least 1.")
    for kind in kinds:
        if kind not in KINDS:
            raise RunError(
                f"Nothing is called `{kind}` that could be covered.{did_you_mean(kind, KINDS)} "
                f"There are {', '.join(KINDS)}."
            )
    ordered = sorted(
        rows, key=lambda row: (row.get("num_ops") or 0, str(row["id"]), str(row.get("framework")))
    )
    incidence = {kind: _incidence(ordered, kind) for kind in dict.fromkeys(kinds)}
    chosen, shares = _choose(list(incidence.values()), len(ordered), count)
    return Covering(
        ids=tuple(str(ordered[index]["id"]) for index in chosen),
        shares=dict(zip(incidence, map(tuple, shares), strict=True)),
        sizes={kind: size for kind, (_, size) in incidence.items()},
        num_samples=len(ordered),
    )


_Incidence = tuple[list[npt.NDArray[np.int64]], int]
"""The numbers of the things that each row has, and how many things there are."""


def _incidence(rows: Sequence[Mapping[str, Any]], kind: str) -> _Incidence:
    numbers: dict[Any, int] = {}
    members = []
    for row in rows:
        things = {numbers.setdefault(thing, len(numbers)) for thing in _things(row, kind)}
        members.append(np.fromiter(sorted(things), np.int64, len(things)))
    return members, len(numbers)


def _things(row: Mapping[str, Any], kind: str) -> Iterator[Any]:
    framework = row.get("framework")
    if kind in _COLUMNS:
        if row.get(_COLUMNS[kind]):
            yield row[_COLUMNS[kind]]
    elif kind == "dtypes":
        yield from {each["dtype"] for each in row["inputs"] if each["dtype"]}
    elif kind == "operators":
        yield from {(framework, op["target"]) for op in row["ops"]}
    else:
        yield from _calls(row)


def _calls(row: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the calls of operators with what is recorded of their operands and results."""
    values: list[Any] = [(each["dtype"], _tuple(each["shape"])) for each in row["inputs"]]
    for op in row["ops"]:
        results = tuple((each["dtype"], _tuple(each["shape"])) for each in op["results"] or ())
        values.append(results[0] if len(results) == 1 else results or None)
        operands = tuple(values[operand] for operand in op["operands"])
        yield row.get("framework"), op["target"], operands, results


def _tuple(shape: Any) -> tuple[int, ...] | None:
    return None if shape is None else tuple(shape)


def _choose(
    incidence: Sequence[_Incidence], num_rows: int, count: int
) -> tuple[list[int], list[list[float]]]:
    """Return the rows by greedy choice, and the share of each kind after each of them."""
    offsets = np.cumsum([0, *(size for _, size in incidence)])
    weight = np.concatenate(
        [np.full(size, 1.0 / max(size, 1) / len(incidence)) for _, size in incidence]
    )
    is_left = np.ones(len(weight), dtype=bool)
    things = [
        np.concatenate(
            [members[row] + start for (members, _), start in zip(incidence, offsets, strict=False)]
        )
        for row in range(num_rows)
    ]

    def worth(row: int) -> float:
        mine = things[row]
        # to twelve digits: what adds the same must not be told apart by the order of a sum
        return round(float(weight[mine] @ is_left[mine]), 12)

    heap = [(-worth(row), row) for row in range(num_rows)]
    heapq.heapify(heap)
    chosen: list[int] = []
    shares: list[list[float]] = [[] for _ in incidence]
    while heap and len(chosen) < count:
        _, row = heapq.heappop(heap)
        now = worth(row)
        if heap and (-now, row) > heap[0]:  # another may be worth more by now
            heapq.heappush(heap, (-now, row))
            continue
        chosen.append(row)
        is_left[things[row]] = False
        for share, (_, size), start in zip(shares, incidence, offsets, strict=False):
            left = int(is_left[start : start + size].sum())
            share.append(1 - left / size if size else 1.0)
    return chosen, shares
