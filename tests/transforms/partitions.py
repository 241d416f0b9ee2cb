"""Random partitions of a graph into convex parts that do not wait for each other in a circle."""

from __future__ import annotations

import numpy as np

from graphnet_datasets.transforms import Cutter


def partition(cutter: Cutter, generator: np.random.Generator, merge: float = 0.8) -> list[set[int]]:
    """Return sets of operators that can be cut out one by one and put together again.

    Begins with the smallest sets that can be cut (an operator with those that take its tuple
    apart, a region with what is in it) and merges two that follow each other as long as no third
    one lies between them.
    """
    groups = _smallest(cutter)
    home = {position: index for index, group in enumerate(groups) for position in group}
    edges = [
        (before, position)
        for position, waits_for in enumerate(cutter.dependences)
        for before in waits_for
    ]
    generator.shuffle(edges)
    for before, after in edges:
        first, second = home[before], home[after]
        if first != second and generator.random() < merge:
            merged = groups[first] | groups[second]
            if not _lies_between(cutter, home, first, second):
                groups[first], groups[second] = merged, set()
                home.update(dict.fromkeys(merged, first))
    return [group for group in groups if group]


def _smallest(cutter: Cutter) -> list[set[int]]:
    """Return sets that no tuple crosses; a region is one of them."""
    parent = list(range(cutter.sample.num_ops))

    def root(position: int) -> int:
        while parent[position] != position:
            position = parent[position]
        return position

    for position, waits_for in enumerate(cutter.dependences):
        for before in waits_for:
            if not cutter.may_cross(before):
                parent[root(position)] = root(before)
    for region in cutter.regions:
        for position in range(region.opens, region.closes + 1):
            parent[root(position)] = root(region.opens)
    groups: dict[int, set[int]] = {}
    for position in range(cutter.sample.num_ops):
        groups.setdefault(root(position), set()).add(position)
    merged = list(groups.values())
    while True:  # the smallest sets may wait for each other, and are one then
        home = {position: index for index, group in enumerate(merged) for position in group}
        circle = _circle(cutter, merged, home)
        if circle is None:
            return merged
        first, second = circle
        merged[first] |= merged[second]
        del merged[second]


def _after(cutter: Cutter, home: dict[int, int]) -> dict[int, set[int]]:
    after: dict[int, set[int]] = {}
    for position, waits_for in enumerate(cutter.dependences):
        for before in waits_for:
            if home[before] != home[position]:
                after.setdefault(home[before], set()).add(home[position])
    return after


def _reached(after: dict[int, set[int]], starts: set[int]) -> set[int]:
    found, pending = set(starts), list(starts)
    while pending:
        for each in after.get(pending.pop(), ()):
            if each not in found:
                found.add(each)
                pending.append(each)
    return found


def _circle(cutter: Cutter, groups: list[set[int]], home: dict[int, int]) -> tuple[int, int] | None:
    after = _after(cutter, home)
    for index in range(len(groups)):
        for each in after.get(index, ()):
            if index in _reached(after, {each}):
                return index, each
    return None


def _lies_between(cutter: Cutter, home: dict[int, int], first: int, second: int) -> bool:
    after = _after(cutter, home)
    others = after.get(first, set()) - {second}
    return second in _reached(after, others)
