"""Folding of a graph into a limited number of boxes: modules, repeated blocks, single calls.

A box is a contiguous range of operators in the sample's order, so edges between boxes only go
forward. Ranges are split where the module changes, as deep in the module tree as the number of
boxes allows. If a sample has no modules, it is split into ranges of equal length.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Literal

from ..sample import Op, Sample, Value
from ..sample.arguments import iterate_refs
from ..sample.targets import base_name
from ..sample.vocabulary import WEIGHT_ROLES

Kind = Literal["input", "output", "product", "norm", "shape", "other", "group"]

_PRODUCTS = ("linear", "matmul", "mm", "conv", "attention", "einsum", "embedding", "lstm", "gru")
_SHAPE_NAMES = """
    view reshape permute transpose contiguous expand unsqueeze squeeze flatten unflatten getitem
    chunk split size cat stack slice select t to clone t_ shape dim unbind repeat narrow
"""
_SHAPES = frozenset(_SHAPE_NAMES.split())


_TITLE_LENGTH = 26


@dataclasses.dataclass(frozen=True)
class Box:
    """A box: its title, the operators from `start` to `stop`, and its output.

    It contains `times` consecutive blocks of the same operators. `shape` is the shape of the last
    value that leaves it, as a string.
    """

    title: str
    kind: Kind
    start: int
    stop: int
    detail: str = ""
    shape: str = ""
    times: int = 1

    @property
    def num_ops(self) -> int:
        """The number of operators in the box."""
        return self.stop - self.start


@dataclasses.dataclass(frozen=True)
class Folded:
    """Boxes in order, and the edges between them as pairs of indices."""

    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]


def fold(sample: Sample, max_boxes: int = 40) -> Folded:
    """Fold a sample into about `max_boxes` boxes, not counting inputs and outputs.

    Weights have no box; the box that uses them counts them.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input
    >>> chain = Sample("example/chain", "torch", "other",
    ...     (Input("input", Value("float32", (2, 3))),),
    ...     tuple(Op("torch.relu", (Ref(index),)) for index in range(5)), (Ref(5),))
    >>> [(box.title, box.times) for box in fold(chain, max_boxes=4).boxes]
    [('input_0', 1), ('relu', 5), ('output', 1)]
    """
    stretches = _stretches(sample, max_boxes)
    boxes = [_box(sample, *stretch) for stretch in stretches]
    data = [
        index
        for index, graph_input in enumerate(sample.inputs)
        if graph_input.role not in WEIGHT_ROLES
    ]
    used = {ref for op in sample.ops for ref in iterate_refs((op.args, op.kwargs))}
    used |= set(iterate_refs(sample.outputs))
    data = [index for index in data if index in used]
    tops = [
        Box(
            sample.input_names[index], "input", 0, 0, "", _shape(sample, sample.inputs[index].value)
        )
        for index in data
    ]
    place_of: dict[int, int] = {index: place for place, index in enumerate(data)}
    num_inputs = len(sample.inputs)
    for place, box in enumerate(boxes, start=len(tops)):
        for position in range(box.start, box.stop):
            place_of[num_inputs + position] = place
    last = len(tops) + len(boxes)
    edges: dict[tuple[int, int], None] = {}
    for position, op in enumerate(sample.ops):
        for ref in iterate_refs((op.args, op.kwargs)):
            edges[place_of.get(ref, -1), place_of[num_inputs + position]] = None
    for ref in iterate_refs(sample.outputs):
        edges[place_of.get(ref, -1), last] = None
    forward_edges = tuple(sorted(edge for edge in edges if edge[0] >= 0 and edge[0] != edge[1]))
    return Folded(
        (*tops, *boxes, Box("output", "output", sample.num_ops, sample.num_ops)), forward_edges
    )


_LONGEST_PERIOD = 200
"""Maximum length of a repeated block, in operators, if no modules are known."""

Stretch = tuple[int, int, str, int]
"""First operator, end (exclusive), module, and number of repeats of the block."""


def _stretches(sample: Sample, max_boxes: int) -> list[Stretch]:
    num_ops = sample.num_ops
    single = [(position, position + 1, "", 1) for position in range(num_ops)]
    if num_ops <= max_boxes:
        return single
    paths = [op.module.split(".") if op.module else [] for op in sample.ops]
    deepest = max(map(len, paths), default=0)
    for depth in range(deepest, 0, -1):
        cut = _merge_repeats(sample, _by_module(paths, depth, 0, num_ops), 1)
        if len(cut) <= max_boxes:
            return _open(sample, paths, cut, depth, deepest, max_boxes)
    # There are no modules, or more modules side by side than boxes.
    cut = _merge_repeats(sample, single, _LONGEST_PERIOD)
    if len(cut) <= max_boxes:
        return cut
    size = -(-num_ops // max_boxes)
    return [(start, min(start + size, num_ops), "", 1) for start in range(0, num_ops, size)]


def _open(
    sample: Sample,
    paths: Sequence[Sequence[str]],
    cut: list[Stretch],
    depth: int,
    deepest: int,
    max_boxes: int,
) -> list[Stretch]:
    """Expand stretches that do not repeat, as far as there is space.

    Stretches with the same operators are expanded together or not at all, and no stretch that
    repeats elsewhere in a single box is expanded, so equal layers look alike.
    """
    for deeper in range(depth + 1, deepest + 2):
        alike: dict[tuple[str, ...], list[Stretch]] = {}
        for stretch in cut:
            alike.setdefault(_block(sample, stretch), []).append(stretch)
        inside: dict[int, list[Stretch]] = {}
        room = max_boxes - len(cut)
        for block, stretches in alike.items():
            if len(block) == 1 or any(times > 1 for _, _, _, times in stretches):
                continue
            opened = {
                stretch[0]: _inside(sample, paths, stretch, deeper, deepest)
                for stretch in stretches
            }
            needed = sum(map(len, opened.values())) - len(stretches)
            if needed <= room:
                room -= needed
                inside |= opened
        cut = [part for stretch in cut for part in inside.get(stretch[0], [stretch])]
    return cut


def _block(sample: Sample, stretch: Stretch) -> tuple[str, ...]:
    """Return the operators of one block of a stretch."""
    start, stop, _, times = stretch
    return tuple(op.target for op in sample.ops[start : start + (stop - start) // times])


def _inside(
    sample: Sample, paths: Sequence[Sequence[str]], stretch: Stretch, depth: int, deepest: int
) -> list[Stretch]:
    """Return the contents of a stretch: modules of this depth, or single operators."""
    start, stop, _, _ = stretch
    if depth <= deepest and any(len(paths[at]) >= depth for at in range(start, stop)):
        return _merge_repeats(sample, _by_module(paths, depth, start, stop), 1)
    return [(position, position + 1, "", 1) for position in range(start, stop)]


def _by_module(paths: Sequence[Sequence[str]], depth: int, start: int, stop: int) -> list[Stretch]:
    stretches: list[Stretch] = []
    for position in range(start, stop):
        name = ".".join(paths[position][:depth])
        if stretches and stretches[-1][2] == name:
            stretches[-1] = (stretches[-1][0], position + 1, name, 1)
        else:
            stretches.append((position, position + 1, name, 1))
    return stretches


def _merge_repeats(sample: Sample, stretches: list[Stretch], longest_period: int) -> list[Stretch]:
    """Merge consecutive stretches that repeat the same operators."""
    words = [tuple(op.target for op in sample.ops[start:stop]) for start, stop, _, _ in stretches]
    merged: list[Stretch] = []
    place = 0
    while place < len(stretches):
        period, times = _repetition(words, place, longest_period)
        start, _, first, _ = stretches[place]
        end = place + period * times
        _, stop, last, _ = stretches[end - 1]
        if times > 1:
            merged.append((start, stop, _common(first, last), times))
            place = end
        else:
            merged.append(stretches[place])
            place += 1
    return merged


def _repetition(
    words: Sequence[tuple[str, ...]], place: int, longest_period: int
) -> tuple[int, int]:
    """Return the period and number of repeats that merge the most stretches."""
    best = (1, 1)
    for period in range(1, longest_period + 1):
        block = words[place : place + period]
        times = 1
        while words[place + times * period : place + (times + 1) * period] == block:
            times += 1
        hides_more = (times - 1) * period > (best[1] - 1) * best[0]
        if times > 1 and hides_more and (period == 1 or times > 2):
            best = (period, times)
    return best


def _common(first: str, last: str) -> str:
    """Return the common name, with a range of indices if only an index differs.

    >>> _common("encoder.layers.0.linear", "encoder.layers.11.norm"), _common("a.b", "a.c")
    ('encoder.layers.0-11', 'a')
    """
    if first == last:
        return first
    shared: list[str] = []
    for left, right in zip(first.split("."), last.split("."), strict=False):
        if left == right:
            shared.append(left)
        elif left.isdigit() and right.isdigit():
            return ".".join([*shared, f"{left}-{right}"])
        else:
            break
    return ".".join(shared)


def _box(sample: Sample, start: int, stop: int, module: str, times: int) -> Box:
    ops = sample.ops[start:stop]
    shape = _shape_of_last(sample, start, stop)
    block = ops[: len(ops) // times]
    if len(block) == 1:
        name = base_name(block[0].target)
        return Box(name, _kind(name), start, stop, _weights(sample, ops), shape, times)
    counts = collections.Counter(base_name(op.target) for op in block)
    telling = [name for name in counts if name.rstrip("_") not in _SHAPES] or list(counts)
    telling.sort(key=lambda name: (_kind(name) != "product", -counts[name], name))
    words = ", ".join(
        f"{counts[name]} {name}" if counts[name] > 1 else name for name in telling[:3]
    )
    detail = words + (", …" if len(counts) > 3 else "")
    title = _short(module) or f"{len(block)} operators"
    return Box(title, "group", start, stop, detail, shape, times)


def _kind(name: str) -> Kind:
    if any(word in name for word in _PRODUCTS):
        return "product"
    if "norm" in name:
        return "norm"
    return "shape" if name.rstrip("_") in _SHAPES else "other"


def _weights(sample: Sample, ops: Sequence[Op]) -> str:
    refs = {ref for op in ops for ref in iterate_refs((op.args, op.kwargs))}
    shapes = [
        _shape(sample, sample.inputs[ref].value)
        for ref in sorted(refs)
        if ref < len(sample.inputs) and sample.inputs[ref].role in WEIGHT_ROLES
    ]
    return f"weights {shapes[0]}" + (", …" if len(shapes) > 1 else "") if shapes else ""


def _shape_of_last(sample: Sample, start: int, stop: int) -> str:
    for position in range(stop - 1, start - 1, -1):
        results = sample.ops[position].results
        if results:
            return _shape(sample, results[0])
    return ""


def _shape(sample: Sample, value: Value) -> str:
    dims = sample.shape_of(value)
    return "" if dims is None else "x".join(map(str, dims)) or "scalar"


def _short(module: str) -> str:
    return module if len(module) <= _TITLE_LENGTH else "…" + ".".join(module.split(".")[-2:])
