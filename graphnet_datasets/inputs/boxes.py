"""Detection of inputs that hold bounding boxes, and ordering of their corners.

A box is a pair of corners, (x1, y1, x2, y2), in four adjacent columns. Detection models take the
logarithm of its sides, divide by its area, and crop it from images. If the columns are drawn
independently, half of all boxes have negative sides. `find_boxes` tracks the columns of each input
through the graph to a subtraction of one corner from the other, or to an operator with box
operands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..operators import OperatorNames
from ..sample import Op, Sample
from ..sample.arguments import iterate_refs
from .columns import Columns, Cut, cut_of
from .consumers import operand, parse_place, ref_of, short_name
from .keeping import once_per_sample
from .rules import rules_of
from .terms import SUBTRACTING, is_whole

_MOST_COLUMNS = 7
"""Maximum width of a vector that contains a box: its corners, an image index, a score and a
class."""
_SHORTEST = 1 / 16
"""Minimum side of a drawn box, in standard deviations of its coordinates."""


class Boxes(NamedTuple):
    """Boxes along the last axis of an input: the column of x1 and the number of images.

    `num_images` is set if the column before x1 contains the image index of the box.
    """

    first: int
    num_images: int | None = None


_KEEPING = OperatorNames("box_columns")
_SPLITTING = OperatorNames("splits")
_UNBINDING = OperatorNames("unbinds")

_PAIRING = OperatorNames("box_pairs")


@once_per_sample
def find_boxes(sample: Sample) -> Mapping[int, Boxes]:
    """Return the inputs of a sample that hold boxes, with floating-point or integer coordinates.

    >>> from graphnet_datasets.sample import Input, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> right, left = (Op("torch.Tensor.select", (Ref(0), 1, column)) for column in (2, 0))
    >>> width = Op("torch.Tensor.sub", (Ref(1), Ref(2)))
    >>> boxes = Input("input", Value("float32", (8, 4)))
    >>> find_boxes(Sample("example", "torch", "cv", (boxes,), (right, left, width), Ref(3)))
    {0: Boxes(first=0, num_images=None)}
    """
    search = _Search(sample)
    if search.values:
        for position, op in enumerate(sample.ops):
            search.step(len(sample.inputs) + position, op)
    return search.found


def order_corners(elements: npt.NDArray, boxes: Boxes, std: float, high: float) -> None:
    """Swap coordinates in place, so that the first corner of each box is the smaller one.

    Boxes are along the last axis of `elements`. Sides shorter than a fraction of `std` are extended
    to it, up to the largest coordinate, `high`. If `std` is 0 or the elements are integers,
    coordinates are only swapped. An axis that is too short for a box is left unchanged.
    """
    if elements.shape[-1] < boxes.first + 4:
        return
    first, second = slice(boxes.first, boxes.first + 2), slice(boxes.first + 2, boxes.first + 4)
    low = np.minimum(elements[..., first], elements[..., second])
    top = np.maximum(elements[..., first], elements[..., second])
    if std > 0 and elements.dtype.kind == "f":
        high = min(high, float(np.finfo(elements.dtype).max))
        side = elements.dtype.type(std * _SHORTEST)
        with np.errstate(over="ignore"):
            is_short = top - low < side
        top = np.where(is_short, np.minimum(low + side, high), top)
        low = np.where(is_short, top - side, low)
    elements[..., first], elements[..., second] = low, top
    if boxes.num_images is not None:
        rows = elements[..., boxes.first - 1].reshape(-1)
        images = np.arange(rows.size) * boxes.num_images // max(rows.size, 1)
        elements[..., boxes.first - 1] = images.reshape(elements.shape[:-1])


class _Search:
    def __init__(self, sample: Sample) -> None:
        self.sample, self.rules = sample, rules_of(sample.framework)
        self.found: dict[int, Boxes] = {}
        self.values: dict[int, Columns | list[Columns]] = {}
        for index, sample_input in enumerate(sample.inputs):
            if sample_input.value.dtype in (None, "bool") or (
                sample_input.role != "input" and is_whole(sample_input.value.dtype or "")
            ):
                continue
            shape = sample.shape_of(sample_input.value)
            rank = 0 if shape is None else len(shape)
            if shape is not None and 1 <= rank <= 3 and 4 <= shape[-1] <= _MOST_COLUMNS:
                self.values[index] = Columns(frozenset({index}), 0, shape[-1], rank)

    def step(self, own: int, op: Op) -> None:
        """Record how operator `own` uses columns, and the columns that its result holds."""
        used = [
            value
            for ref in iterate_refs((op.args, op.kwargs))
            if (value := self.values.get(ref)) is not None
        ]
        if not used:
            return
        name = short_name(op.target)
        self._note_taken(name, op)
        whole = self.values.get(ref) if (ref := ref_of(operand(op, (0, "x")))) is not None else None
        columns: Columns | list[Columns] | None = None
        if isinstance(whole, list):
            key = op.args[1] if name == "getitem" and len(op.args) > 1 else None
            columns = whole[key] if type(key) is int and -len(whole) <= key < len(whole) else None
        elif name in SUBTRACTING:
            self._note_sides(op)
        elif whole is not None and name in _UNBINDING | _SPLITTING:
            columns = self._split(name, op, whole)
        elif whole is not None and (cut := cut_of(name, op, whole, self.rules)) is not None:
            columns = self._cut(op, whole, cut)
        elif name in _KEEPING:
            columns = self._kept(op, [value for value in used if isinstance(value, Columns)])
        if columns is not None:
            self.values[own] = columns

    def _note_sides(self, op: Op) -> None:
        """Record boxes whose corners are subtracted from each other."""
        operands = [ref_of(arg) for arg in op.args[:2]]
        end, start = (
            self.values.get(-1 if ref is None else ref) for ref in [*operands, -1, -1][:2]
        )
        if not isinstance(end, Columns) or not isinstance(start, Columns):
            return
        if end.width == start.width <= 2 and end.first == start.first + 2 and start.first <= 1:
            for source in end.sources & start.sources:
                # A pair of columns starts with x; a single column may be y.
                self._note(source, start.first, is_sure=start.width == 2)

    def _note(self, source: int, first: int, *, is_sure: bool, images: int | None = None) -> None:
        size = (self.sample.shape_of(self.sample.inputs[source].value) or (0,))[-1]
        if first == 1 and size == 4 and not is_sure:
            first = 0  # y2 - y1
        if first + 4 > size:
            return
        findings = self.found.get(source)
        if findings is None or (first < findings.first and findings.num_images is None):
            self.found[source] = Boxes(first, images)
        elif images is not None:
            self.found[source] = Boxes(findings.first, images)

    def _note_taken(self, name: str, op: Op) -> None:
        """Record the box operands of an operator."""
        text = self.rules.boxes(op)
        if text is None:
            return
        place = parse_place(text)
        places = [place]
        if name in _PAIRING:
            places.append((1, "y" if place[1] == "x" else "boxes2"))
        for position in places:
            for ref in iterate_refs(operand(op, position)):
                value = self.values.get(ref)
                if isinstance(value, Columns) and value.width >= 4 and value.first == 0:
                    is_indexed = value.width == 5 and name.startswith(("roi", "ps_roi"))
                    for source in value.sources:
                        images = self._num_images(op) if is_indexed else None
                        self._note(source, int(is_indexed), is_sure=True, images=images)

    def _num_images(self, op: Op) -> int:
        ref = ref_of(operand(op, (0, "input")))
        shape = None
        if ref is not None and ref < len(self.sample.inputs):
            shape = self.sample.shape_of(self.sample.inputs[ref].value)
        elif ref is not None:
            shape = self._shape(self.sample.ops[ref - len(self.sample.inputs)])
        return shape[0] if shape else 1

    def _shape(self, op: Op) -> tuple[int, ...] | None:
        if op.results is None or len(op.results) != 1:
            return None
        return self.sample.shape_of(op.results[0])

    def _split(self, name: str, op: Op, whole: Columns) -> list[Columns] | None:
        if whole.is_apart:
            return None
        if name in _UNBINDING:
            axis = operand(op, (1, self.rules.axis_name))
            if axis is None or (axis != -1 and (whole.rank is None or axis != whole.rank - 1)):
                return None
            return [
                whole._replace(first=whole.first + column, width=1, is_apart=True)
                for column in range(whole.width)
            ]
        shapes = [self.sample.shape_of(result) for result in op.results or ()]
        widths = [shape[-1] for shape in shapes if shape]
        if len(widths) != len(shapes) or not widths:
            return None
        if all(width == whole.width for width in widths):
            return [whole] * len(widths)
        if sum(widths) != whole.width:
            return None
        starts = np.cumsum([whole.first, *widths[:-1]]).tolist()
        places = zip(starts, widths, strict=True)
        return [whole._replace(first=start, width=width) for start, width in places]

    def _cut(self, op: Op, whole: Columns, cut: Cut) -> Columns | None:
        shape = self._shape(op)
        rank = cut.rank if shape is None else len(shape)
        if cut.columns is None:
            return self._kept(op, [whole._replace(rank=rank)])
        start, stop, is_apart = cut.columns
        if whole.is_apart:
            return None
        start, stop = (edge + whole.width if edge < 0 else edge for edge in (start, stop))
        stop = min(stop, whole.width)
        if not 0 <= start < stop:
            return None
        first = whole.first + start
        return Columns(whole.sources, first, stop - start, rank, is_apart)

    def _kept(self, op: Op, used: list[Columns]) -> Columns | None:
        """Return the columns of a result that preserves the columns of its operands."""
        if not used or any(value[1:3] != used[0][1:3] for value in used):
            return None
        shape = self._shape(op)
        sources = frozenset().union(*(value.sources for value in used))
        is_apart = any(value.is_apart for value in used)
        if not is_apart and shape is not None and (not shape or shape[-1] != used[0].width):
            if used[0].width > 1:
                return None
            is_apart = True  # a single column whose axis was moved or removed
        rank = used[0].rank if shape is None else len(shape)
        return Columns(sources, used[0].first, used[0].width, rank, is_apart)
