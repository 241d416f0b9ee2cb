"""Recurring sequences of operators across families of graphs, selected without overlap.

A sequence is a contiguous range of operators. Two sequences are equal if their operators have the
same names and use each other's results in the same positions. Literals, shapes and values from
outside are ignored. A contiguous range is always convex.

All windows of one length are hashed at once. The hash of a window is a polynomial modulo 2**64 of
its operators, evaluated at an odd number (Karp and Rabin 1987), to which each edge inside the
window adds a term. Prefix sums, and differences at the ends of edges, compute all windows in linear
time.

Each operator is selected at most once, and each sequence occurs in at least two families:

1. *Blocks*: sequences that directly follow themselves in some graph (layers, stages). Sequences
that
   cover the most operators in such runs come first; among equals the shorter, then the earlier one.
2. *Repeats*: the longest remaining sequences first; of equal lengths, those that cover the most
   operators.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..analysis.effects import NO_COMPUTATION
from ..frameworks import find_regions
from ..sample import Sample
from ..sample.arguments import iterate_refs
from ..sample.targets import base_name
from .cut import Cutter
from .operator_kinds import kind_of

Array: TypeAlias = npt.NDArray[np.int64]
Hashes: TypeAlias = npt.NDArray[np.uint64]

MAX_LENGTH = 128
"""Length of the longest sequence, enough for a large decomposed layer."""
MIN_LENGTH = 2
MIN_BLOCK = 4

_BASE = 0x9E3779B97F4A7C15
"""Base of the polynomial; odd, so that it has an inverse modulo 2**64."""
_MASK = 2**64 - 1


@dataclasses.dataclass(frozen=True)
class Trace:
    """Operator names and data flow of a graph.

    `edges` are rows of consumer, producer and position among the consumer's operands. `ties` are
    pairs of operators that must stay together; `walls` are operators that belong to no sequence.
    """

    targets: tuple[str, ...]
    edges: Array = dataclasses.field(default_factory=lambda: _rows([], 3))
    ties: Array = dataclasses.field(default_factory=lambda: _rows([], 2))
    walls: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Repeat:
    """A sequence: its length, and the graph and first operator of each selected occurrence."""

    length: int
    places: tuple[tuple[int, int], ...]
    kind: Literal["block", "repeat"]

    @property
    def num_covered(self) -> int:
        """Number of operators covered."""
        return self.length * len(self.places)


def trace(sample: Sample) -> Trace:
    """Return the trace of a sample for `find_repeats`, without walking or running the sample.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> sample = Sample("example/exp", "torch", "other", (Input("input", Value("float32", (4,))),),
    ...     (Op("torch.exp", (Ref(0),)), Op("torch.add", (Ref(0), Ref(1)))), Ref(2))
    >>> trace(sample).edges.tolist()
    [[1, 0, 1]]
    """
    num_inputs = len(sample.inputs)
    edges: list[tuple[int, int, int]] = []
    ties: list[tuple[int, int]] = []
    walls = {end for region in find_regions(sample) for end in (region.opens, region.closes)}
    for position, op in enumerate(sample.ops):
        for place, ref in enumerate(iterate_refs((op.args, op.kwargs))):
            if ref < num_inputs:
                continue
            edges.append((position, ref - num_inputs, place))
            if base_name(op.target) == "getitem" and place == 0:
                ties.append((ref - num_inputs, position))
        if op.target in NO_COMPUTATION:
            walls.add(position)
    targets = tuple(op.target for op in sample.ops)
    return Trace(targets, _rows(edges, 3), _rows(ties, 2), tuple(sorted(walls)))


def find_own_repeats(cutter: Cutter) -> list[tuple[int, ...]]:
    """Return the occurrences of sequences that recur within one graph, in order.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> ops = tuple(Op(f"torch.{name}", (Ref(index),)) for index, name in
    ...     enumerate(("exp", "abs", "sin", "exp", "abs")))
    >>> inputs = (Input("input", Value("float32", (4,))),)
    >>> find_own_repeats(Cutter(Sample("a", "torch", "other", inputs, ops, Ref(5))))
    [(0, 1), (3, 4)]
    """
    places = [
        (start, repeat.length)
        for repeat in find_repeats([trace(cutter.sample)], [""], min_families=1)
        for _, start in repeat.places
    ]
    return [tuple(range(start, start + length)) for start, length in sorted(places)]


def find_repeats(
    traces: Sequence[Trace],
    families: Sequence[str],
    *,
    max_length: int = MAX_LENGTH,
    min_families: int = 2,
) -> list[Repeat]:
    """Return the selected sequences, in order of selection.

    Each sequence occurs at least twice, in graphs of at least `min_families` families.
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> def traced(*names):
    ...     ops = tuple(Op(f"torch.{name}", (Ref(index),)) for index, name in enumerate(names))
    ...     inputs = (Input("input", Value("float32", (4,))),)
    ...     return trace(Sample("a", "torch", "other", inputs, ops, Ref(len(ops))))
    >>> graphs = [traced("exp", "sin", "abs"), traced("relu", "exp", "sin"), traced("abs", "sin")]
    >>> [(repeat.length, repeat.places) for repeat in find_repeats(graphs, ["a", "b", "c"])]
    [(2, ((0, 0), (1, 1)))]
    """
    if not traces:
        return []
    return list(_Choice(_Windows(traces, families, min_families), max_length).run())


class _Windows:
    """All operators of all graphs in one array, and hashes of windows of any length."""

    def __init__(self, traces: Sequence[Trace], families: Sequence[str], min_families: int) -> None:
        self.min_families = min_families
        sizes = np.array([len(graph.targets) for graph in traces], np.int64)
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        self.size = int(self.starts[-1])
        self.graph_of = np.repeat(np.arange(len(traces)), sizes)
        names = sorted(set(families))
        index = {name: number for number, name in enumerate(names)}
        numbers = np.array([index[name] for name in families], np.int64)
        self.num_families = len(names)
        self.family_of = np.repeat(numbers, sizes)
        shifted = [
            (graph.edges + np.array([start, start, 0]), graph.ties + start)
            for graph, start in zip(traces, self.starts[:-1], strict=True)
        ]
        edges = np.concatenate([rows for rows, _ in shifted])
        self.takers, self.makers = edges[:, 0], edges[:, 1]
        self.ties = np.concatenate([rows for _, rows in shifted])
        targets = [target for graph in traces for target in graph.targets]
        self._powers = _powers(_BASE, self.size)
        self._inverses = _powers(pow(_BASE, -1, 2**64), self.size)
        self._sums = _prefix_sums(_hash_texts(targets) * self._powers)
        distance = (self.takers - self.makers).astype(np.uint64)
        terms = _mix(distance * np.uint64(4096) + edges[:, 2].astype(np.uint64))
        self._terms = terms * self._powers[self.takers]
        self.is_free = np.ones(self.size, bool)
        """True for operators that are not selected yet."""
        for graph, start in zip(traces, self.starts[:-1], strict=True):
            self.is_free[start + np.array(graph.walls, np.int64)] = False
        computing = [kind_of(target) not in ("view", "source") for target in targets]
        self._computing = _prefix_sums(np.array(computing, np.int64))
        self._last = self.starts[1:][self.graph_of] if self.size else self.starts[:0]

    def hashes(self, length: int) -> Hashes:
        """Return the hashes of all windows of a length, by first operator."""
        count = self.size - length + 1
        starts = np.arange(count)
        total = self._sums[starts + length] - self._sums[starts]
        inside = self.takers - self.makers < length
        takers, makers, terms = self.takers[inside], self.makers[inside], self._terms[inside]
        changes = np.zeros(self.size + 1, np.uint64)
        np.add.at(changes, np.maximum(takers - length + 1, 0), terms)
        np.subtract.at(changes, makers + 1, terms)
        total = total + np.cumsum(changes, dtype=np.uint64)[:count]
        return _mix(total * self._inverses[:count])

    def valid(self, length: int) -> npt.NDArray[np.bool_]:
        """Return, for each window, whether it lies in one graph, splits no tie, and computes."""
        count = self.size - length + 1
        starts = np.arange(count)
        fits = starts + length <= self._last[:count]
        fits &= self._computing[starts + length] > self._computing[starts]
        changes = np.zeros(self.size + 2, np.int64)
        first, second = self.ties[:, 0], self.ties[:, 1]
        # Windows that contain only the first operator of a tie, then only the second.
        for low, high in (
            (first - length + 1, np.minimum(first, second - length)),
            (np.maximum(first + 1, second - length + 1), second),
        ):
            is_some = high >= np.maximum(low, 0)
            np.add.at(changes, np.maximum(low, 0)[is_some], 1)
            np.subtract.at(changes, high[is_some] + 1, 1)
        return fits & (np.cumsum(changes)[:count] == 0)

    def free(self, length: int) -> npt.NDArray[np.bool_]:
        """Return, for each window, whether none of its operators is selected."""
        num_taken = _prefix_sums((~self.is_free).astype(np.int64))
        return num_taken[length:] == num_taken[:-length]

    def groups(self, hashes: Hashes, starts: Array) -> Iterator[Array]:
        """Yield the windows of each hash that occurs in enough families, in order."""
        if not len(starts):
            return
        order = np.argsort(hashes[starts], kind="stable")
        starts = starts[order]
        keys = hashes[starts]
        heads = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        number = np.cumsum(np.concatenate([[False], keys[1:] != keys[:-1]]))
        pairs = np.unique(number * self.num_families + self.family_of[starts])
        families = np.bincount(pairs // self.num_families, minlength=len(heads))
        ends = np.concatenate([heads[1:], [len(starts)]])
        is_enough = (families >= self.min_families) & (ends - heads > 1)
        for group in np.flatnonzero(is_enough):
            yield starts[heads[group] : ends[group]]

    def recurs(self, starts: Array) -> bool:
        """Return whether there are several windows, in graphs of enough families."""
        families = np.unique(self.family_of[starts])
        return len(starts) > 1 and len(families) >= self.min_families

    def places(self, starts: Array) -> tuple[tuple[int, int], ...]:
        """Return the graph and the first operator of each window."""
        graphs = self.graph_of[starts]
        offsets = starts - self.starts[graphs]
        return tuple(zip(graphs.tolist(), offsets.tolist(), strict=True))


class _Choice:
    def __init__(self, windows: _Windows, max_length: int) -> None:
        self.windows = windows
        self.lengths = range(MIN_LENGTH, min(max_length, windows.size) + 1)

    def run(self) -> Iterator[Repeat]:
        yield from self._blocks()
        for length in reversed(self.lengths):
            yield from self._repeats(length)

    def _blocks(self) -> Iterator[Repeat]:
        """Yield sequences that repeat back to back, by the number of operators they cover."""
        windows = self.windows
        candidates: list[tuple[int, int, int, Array]] = []
        for length in self.lengths:
            if length < MIN_BLOCK or 2 * length > windows.size:
                continue
            hashes = windows.hashes(length)
            fits = windows.valid(length) & windows.free(length)
            follows = np.zeros(len(hashes), bool)
            follows[:-length] = (hashes[:-length] == hashes[length:]) & fits[:-length]
            follows[:-length] &= fits[length:]
            follows[length:] |= follows[:-length].copy()
            in_runs = np.unique(hashes[follows])
            candidate_starts = np.flatnonzero(fits & np.isin(hashes, in_runs))
            for group in windows.groups(hashes, candidate_starts):
                runs = _without_overlap(group[follows[group]], length)
                candidates.append((-length * len(runs), length, int(group[0]), group))
        candidates.sort(key=lambda candidate: candidate[:3])
        for _, length, _, group in candidates:
            selected = self._take(group, length)
            if selected is not None:
                yield Repeat(length, windows.places(selected), "block")

    def _repeats(self, length: int) -> Iterator[Repeat]:
        windows = self.windows
        candidate_starts = np.flatnonzero(windows.valid(length) & windows.free(length))
        groups = list(windows.groups(windows.hashes(length), candidate_starts))
        groups.sort(key=lambda group: (-len(_without_overlap(group, length)), int(group[0])))
        for group in groups:
            selected = self._take(group, length)
            if selected is not None:
                yield Repeat(length, windows.places(selected), "repeat")

    def _take(self, group: Array, length: int) -> Array | None:
        """Select the free windows of a group, unless they occur in too few families."""
        is_free = self.windows.is_free
        free = group[[is_free[start : start + length].all() for start in group]]
        selected = _without_overlap(free, length)
        if not self.windows.recurs(selected):
            return None
        is_free[(selected[:, None] + np.arange(length)).ravel()] = False
        return selected


def _without_overlap(starts: Array, length: int) -> Array:
    """Return windows from the first on, skipping windows that overlap the last selected one."""
    if len(starts) < 2 or (np.diff(starts) >= length).all():
        return starts
    selected = []
    end = -1
    for start in starts.tolist():
        if start >= end:
            selected.append(start)
            end = start + length
    return np.array(selected, np.int64)


def _rows(rows: Sequence[tuple[int, ...]], width: int) -> Array:
    return np.array(rows, np.int64).reshape(-1, width)


def _powers(base: int, count: int) -> Hashes:
    powers = np.full(count, base & _MASK, np.uint64)
    if count:
        powers[0] = 1
    return np.multiply.accumulate(powers)


def _prefix_sums(values: npt.NDArray) -> npt.NDArray:
    return np.concatenate([np.zeros(1, values.dtype), np.cumsum(values, dtype=values.dtype)])


def _hash_texts(strings: Sequence[str]) -> Hashes:
    hashes = {
        string: int.from_bytes(hashlib.blake2b(string.encode(), digest_size=8).digest(), "little")
        for string in set(strings)
    }
    return np.array([hashes[string] for string in strings], np.uint64)


def _mix(values: Hashes) -> Hashes:
    """Mix the bits of integers with MurmurHash3's finaliser, so that sums have no structure."""
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (33, 0xC4CEB9FE1A85EC53), (33, 1)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values
