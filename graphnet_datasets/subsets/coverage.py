"""Subsets of samples that cover most operators, shapes and families of a dataset.

The covered share is submodular: a sample adds no more to a larger subset than to a smaller one. A
greedy choice therefore reaches at least 1 - 1/e of the best subset of its size (Nemhauser, Wolsey
and Fisher, "An analysis of approximations for maximizing submodular set functions", 1978). The
former gain of a sample is an upper bound of its present gain, so that only samples at the head of a
heap are evaluated again (Minoux, "Accelerated greedy algorithms", 1978).
"""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import RunError
from ..suggestions import did_you_mean

KINDS: Mapping[str, str] = {
    "operators": "operators, by name",
    "shapes": "operators with the dtypes and shapes of operands and results",
    "families": "families of models",
    "tasks": "tasks",
    "dtypes": "dtypes of inputs and weights",
    "sources": "sources",
}
"""Kinds of things that can be covered, with descriptions."""
DEFAULT_KINDS = ("operators", "shapes", "families")
_COLUMNS = {"families": "family", "tasks": "task", "sources": "source"}


READ_COLUMNS = ("id", "framework", "num_ops", "family", "task", "source", "inputs", "ops")
"""The columns that `cover` reads."""


@dataclasses.dataclass(frozen=True)
class Covering:
    """Samples in order of choice, and the shares that they cover.

    `shares` contains per kind the share covered after each choice, `sizes` the number of things of
    the kind, and `num_samples` the number of samples to choose from.
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
    rows: Iterable[Mapping[str, Any]], count: int, kinds: Sequence[str] = DEFAULT_KINDS
) -> Covering:
    """Choose `count` rows of `graphs` greedily by the coverage that each adds.

    Coverage is the mean of the covered shares over the kinds, so that kinds with many things do not
    dominate. Ties go to the row with fewer operators, then to the smaller id, so that the result
    does not depend on the order of the rows. Rows that add nothing are chosen last, until there are
    `count`. Rows are read once, so they may come from a generator.

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
    >>> covering = cover(rows, 2, ("operators", "families"))
    >>> covering.ids, covering.shares["operators"]
    (('a', 'b'), (1.0, 1.0))
    """
    if count < 1:
        raise RunError(f"`count` must be at least 1, got {count}.")
    if not kinds:
        raise RunError(f"No kind to cover was named. Choose from {', '.join(KINDS)}.")
    for kind in kinds:
        if kind not in KINDS:
            raise RunError(
                f"Unknown kind `{kind}`.{did_you_mean(kind, KINDS)} Choose from {', '.join(KINDS)}."
            )
    incidence = {kind: _Incidence() for kind in dict.fromkeys(kinds)}
    keys = []
    for row in rows:
        keys.append((row.get("num_ops") or 0, str(row["id"]), str(row.get("framework"))))
        for kind, of_kind in incidence.items():
            of_kind.add(_things(row, kind))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    members = [
        ([of_kind.members[row] for row in order], of_kind.size) for of_kind in incidence.values()
    ]
    chosen, shares = _choose(members, len(order), count)
    return Covering(
        ids=tuple(keys[order[index]][1] for index in chosen),
        shares=dict(zip(incidence, map(tuple, shares), strict=True)),
        sizes={kind: of_kind.size for kind, of_kind in incidence.items()},
        num_samples=len(order),
    )


_Members = tuple[list[npt.NDArray[np.int64]], int]
"""The indices of the things of each row, and the number of things."""


class _Incidence:
    """The covered items of each row as indices. Items are stored as digests to save memory."""

    def __init__(self) -> None:
        self.members: list[npt.NDArray[np.int64]] = []
        self._numbers: dict[bytes, int] = {}

    @property
    def size(self) -> int:
        """The number of different things."""
        return len(self._numbers)

    def add(self, things: Iterable[Any]) -> None:
        """Add the things of the next row."""
        digests = {
            hashlib.blake2b(repr(thing).encode(), digest_size=16).digest() for thing in {*things}
        }
        indices = sorted(self._numbers.setdefault(digest, len(self._numbers)) for digest in digests)
        self.members.append(np.array(indices, np.int64))


def _things(row: Mapping[str, Any], kind: str) -> Iterator[Any]:
    framework = row.get("framework")
    if kind in _COLUMNS:
        if row.get(_COLUMNS[kind]):
            yield row[_COLUMNS[kind]]
    elif kind == "dtypes":
        yield from {value["dtype"] for value in row["inputs"] if value["dtype"]}
    elif kind == "operators":
        yield from {(framework, op["target"]) for op in row["ops"]}
    else:
        yield from _calls(row)


def _calls(row: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the calls of operators with the recorded dtypes and shapes."""
    values: list[Any] = [(value["dtype"], _tuple(value["shape"])) for value in row["inputs"]]
    for op in row["ops"]:
        results = tuple(
            (result["dtype"], _tuple(result["shape"])) for result in op["results"] or ()
        )
        values.append(results[0] if len(results) == 1 else results or None)
        operands = tuple(values[operand] for operand in op["operands"])
        yield row.get("framework"), op["target"], operands, results


def _tuple(shape: Any) -> tuple[int, ...] | None:
    return None if shape is None else tuple(shape)


def _choose(
    incidence: Sequence[_Members], num_rows: int, count: int
) -> tuple[list[int], list[list[float]]]:
    """Return the greedy choice of rows, and the covered share per kind after each row."""
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
        row_things = things[row]
        # rounded, so that equal gains do not differ by the order of a sum
        return round(float(weight[row_things] @ is_left[row_things]), 12)

    heap = [(-worth(row), row) for row in range(num_rows)]
    heapq.heapify(heap)
    chosen: list[int] = []
    shares: list[list[float]] = [[] for _ in incidence]
    while heap and len(chosen) < count:
        _, row = heapq.heappop(heap)
        now = worth(row)
        if heap and (-now, row) > heap[0]:  # another row may have a larger gain now
            heapq.heappush(heap, (-now, row))
            continue
        chosen.append(row)
        is_left[things[row]] = False
        for share, (_, size), start in zip(shares, incidence, offsets, strict=False):
            left = int(is_left[start : start + size].sum())
            share.append(1 - left / size if size else 1.0)
    return chosen, shares
