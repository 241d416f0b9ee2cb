"""`draw_graph`: the picture of a graph as a self-contained SVG.

It uses plain sans-serif text, dark on light, for screen and print. Long graphs are split into
columns, read from left to right.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from ..atomic import write_text
from ..errors import SampleError, raises_only
from ..sample import Sample
from ..terminal import printable
from .folding import Box, Folded, Kind, fold
from .layered import Layout, place

FILLS: dict[Kind, str] = {
    "input": "#ffffff", "output": "#ffffff", "product": "#cfe2f5", "norm": "#dcefd8",
    "shape": "#f0f0f0", "other": "#fbeccb", "group": "#e6e0f3",
}  # fmt: skip
LEGEND: dict[Kind, str] = {
    "group": "module or stretch of operators", "product": "product, convolution, attention",
    "norm": "norm", "shape": "change of shape", "other": "other operator",
}  # fmt: skip

_LETTER, _SMALL = 8.3, 6.5
"""Letter widths of the two font sizes in pixels; letters of sans-serif fonts are narrower."""
_STEP, _MARGIN, _HEADER = 80.0, 16.0, 44.0
_HALF_ROW = 26.0
"""Half the height of the tallest box."""
_HEAD = 7.0
"""Vertical space for the head of an arrow."""
_COLUMN_GAP, _LANE = 46.0, 5.0
_FEWEST_ROWS = 8
_MOST_BROKEN = 3
"""Maximum number of edges between two columns, so that readers can follow them."""
_WIDEST_RATIO = 1.5
"""Maximum ratio of height to width before a picture is split into more columns."""


@raises_only(SampleError)
def draw_graph(sample: Sample, max_boxes: int = 40) -> str:
    """Return the graph of a sample as SVG, folded by module if it has many operators.

    A box shows its name, its number of repeats, its weights or operators, and the shape of its
    output. Equal samples produce equal SVG.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> relu = Sample("example/relu", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),), (Op("torch.relu", (Ref(0),)),), (Ref(1),))
    >>> svg = draw_graph(relu)
    >>> svg.startswith("<svg"), svg.count("<rect"), svg.count("<path")
    (True, 5, 3)
    """
    folded = fold(sample, max_boxes)
    widths = [_width(box) for box in folded.boxes]
    layout = place(widths, folded.edges)
    picture = _Picture(sample, folded, widths, layout)
    return picture.svg()


@raises_only(SampleError)
def write_graph(sample: Sample, path: str | os.PathLike[str], max_boxes: int = 40) -> Path:
    """Write the picture of a sample to a file atomically.

    >>> import tempfile
    >>> from graphnet_datasets.sample import Input, Value
    >>> identity = Sample("example/identity", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),), ops=(), outputs=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_graph(identity, f"{folder}/identity.svg").read_text()[:4]
    '<svg'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_text(path, draw_graph(sample, max_boxes))


def _lines(box: Box) -> tuple[str, str, str]:
    title = box.title + (f"  x {box.times}" if box.times > 1 else "")
    return (
        title,
        _cut(box.detail),
        f"→ {box.shape}" if box.shape and box.kind != "input" else box.shape,
    )


def _cut(text: str) -> str:
    return text if len(text) <= 34 else text[:33] + "…"


def _width(box: Box) -> float:
    title, detail, shape = _lines(box)
    return max(54.0, len(title) * _LETTER, len(detail) * _SMALL, len(shape) * _SMALL) + 16


def _height(box: Box) -> float:
    return 10.0 + 15.0 + 13.0 * sum(map(bool, _lines(box)[1:]))


@dataclasses.dataclass(frozen=True)
class _Point:
    x: float
    y: float


class _Picture:
    def __init__(self, sample: Sample, folded: Folded, widths: list[float], layout: Layout) -> None:
        self.sample, self.folded, self.widths, self.layout = sample, folded, widths, layout
        self.num_layers = max(layout.layers, default=0) + 1
        self.num_columns = self._columns()
        self.per_column = -(-self.num_layers // self.num_columns)
        self.num_crossing = sum(
            self._column(self.layout.layers[source]) != self._column(self.layout.layers[target])
            for source, target in folded.edges
        )
        self.lane = 0
        self.top = _HEADER + _MARGIN + (self.num_crossing * _LANE if self.num_columns > 1 else 0)
        self.bottom = self.top + self.per_column * _STEP
        self.gap = _COLUMN_GAP + self.num_crossing * _LANE
        self.starts, self.ends = self._extents()

    def _columns(self) -> int:
        columns = 1
        while True:
            rows = math.ceil(self.num_layers / columns)
            width = columns * (self.layout.width + _COLUMN_GAP)
            if rows * _STEP <= _WIDEST_RATIO * width or rows <= _FEWEST_ROWS:
                return columns
            rows = math.ceil(self.num_layers / (columns + 1))
            layers = self.layout.layers
            broken = sum(
                layers[source] // rows != layers[target] // rows
                for source, target in self.folded.edges
            )
            if broken > _MOST_BROKEN * columns:
                return columns
            columns += 1

    def _extents(self) -> tuple[list[float], list[float]]:
        """Return the smallest and largest x of each column's contents."""
        starts = [math.inf] * self.num_columns
        ends = [-math.inf] * self.num_columns
        layers = self.layout.layers
        spans = [
            (layer, centre - width / 2, centre + width / 2)
            for layer, centre, width in zip(layers, self.layout.centres, self.widths, strict=True)
        ]
        for (source, target), bends in self.layout.bends.items():
            if self._column(layers[source]) == self._column(layers[target]):
                spans += [(layers[source] + 1 + step, x, x) for step, x in enumerate(bends)]
        for layer, left, right in spans:
            column = self._column(layer)
            starts[column] = min(starts[column], left)
            ends[column] = max(ends[column], right)
        return starts, ends

    def _left(self, column: int) -> float:
        """Return the left edge of a column."""
        before = (end - start + self.gap for start, end in zip(self.starts, self.ends, strict=True))
        return _MARGIN + sum(itertools.islice(before, column))

    def _column(self, layer: int) -> int:
        return layer // self.per_column

    def _point(self, x: float, layer: int) -> _Point:
        column = self._column(layer)
        return _Point(
            self._left(column) + x - self.starts[column],
            self.top + (layer - column * self.per_column) * _STEP + 26,
        )

    def svg(self) -> str:
        width = self._left(self.num_columns) - self.gap + _MARGIN
        width = max(width, self._legend_width(), _MARGIN * 2 + len(self._subtitle()) * _SMALL)
        height = self.bottom + _MARGIN + 40
        if self.num_columns > 1:
            height += self.num_crossing * _LANE
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif" '
            'fill="#1a1a1a" role="img">',
            f"<title>{escape(self.sample.id)}</title>",
            '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0.5 L8 4 L0 7.5 z" fill="#555555"/>'
            "</marker></defs>",
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
            f'<text x="{_MARGIN}" y="24" font-size="15" font-weight="bold">'
            f"{escape(self.sample.id)}</text>",
            f'<text x="{_MARGIN}" y="41" font-size="11">{escape(self._subtitle())}</text>',
            *self._edges(),
            *self._boxes(),
            *self._legend(height - 16),
            "</svg>",
        ]
        return printable("\n".join(parts) + "\n")

    def _subtitle(self) -> str:
        sample = self.sample
        shown = sum(box.kind not in ("input", "output") for box in self.folded.boxes)
        folded = f" in {shown} boxes" if shown < sample.num_ops else ""
        operators = "operator" if sample.num_ops == 1 else "operators"
        return (
            f"{sample.framework}, {sample.num_ops:,} {operators}{folded}, "
            f"{sample.num_params:,} parameters"
        )

    def _boxes(self) -> Iterator[str]:
        for number, box in enumerate(self.folded.boxes):
            centre = self._point(self.layout.centres[number], self.layout.layers[number])
            width, height = self.widths[number], _height(box)
            x, y = centre.x - width / 2, centre.y - height / 2
            is_end = box.kind in ("input", "output")
            size = f'width="{width:.1f}" height="{height:.1f}"'
            radius = height / 2 if is_end else 4
            if box.times > 1:  # a second rectangle behind the box
                yield (
                    f'<rect x="{x + 3:.1f}" y="{y + 3:.1f}" {size} rx="{radius:.0f}" '
                    f'fill="{FILLS[box.kind]}" stroke="#777777"/>'
                )
            yield (
                f'<rect x="{x:.1f}" y="{y:.1f}" {size} rx="{radius:.0f}" '
                f'fill="{FILLS[box.kind]}" stroke="#444444"/>'
            )
            line = y + 18
            for index, text in enumerate(_lines(box)):
                if text:
                    style = 'font-size="13" font-weight="bold"' if index == 0 else 'font-size="11"'
                    yield (
                        f'<text x="{centre.x:.1f}" y="{line:.1f}" {style} text-anchor="middle">'
                        f"{escape(text)}</text>"
                    )
                    line += 14 if index == 0 else 13

    def _edges(self) -> Iterator[str]:
        style = 'fill="none" stroke="#555555" stroke-width="1.1" marker-end="url(#end)"'
        layers = self.layout.layers
        for source, target in self.folded.edges:
            start = self._point(self.layout.centres[source], layers[source])
            end = self._point(self.layout.centres[target], layers[target])
            bottom = start.y + _height(self.folded.boxes[source]) / 2
            top = end.y - _height(self.folded.boxes[target]) / 2 - 1
            if self._column(layers[source]) == self._column(layers[target]):
                bends = self.layout.bends.get((source, target), ())
                middle = [self._point(x, layers[source] + 1 + step) for step, x in enumerate(bends)]
                way = _curve([start, *middle, end])
            else:
                way = self._detour(start, end, layers[source], layers[target])
            path = f"M{start.x:.1f} {bottom:.1f} {way} L{end.x:.1f} {top:.1f}"
            yield f'<path d="{path}" {style}/>'

    def _detour(self, start: _Point, end: _Point, source: int, target: int) -> str:
        """Return the path from one column to a later column, around the boxes.

        It crosses a column between rows of boxes or above all of them.
        """
        self.lane += 1
        shift = self.lane * _LANE
        column = self._column(source)
        right = self._left(column + 1) - self.gap + 10 + shift
        over = _HEADER + 12 + shift
        left = self._left(self._column(target)) - 10 - shift
        between = _STEP - 2 * _HALF_ROW
        down = start.y + _HALF_ROW + 2 + shift % (between / 2)
        above = end.y - _HALF_ROW - _HEAD - shift % (between / 2)
        way = [(start.x, down), (right, down), (right, over)]
        is_first = target % self.per_column == 0
        if self._column(target) > column + 1 or not is_first:
            way += [(left, over)]
            way += [(end.x, over)] if is_first else [(left, above), (end.x, above)]
        else:
            way += [(end.x, over)]
        return " ".join(f"L{x:.1f} {y:.1f}" for x, y in way)

    def _legend_width(self) -> float:
        present = {box.kind for box in self.folded.boxes}
        texts = [text for kind, text in LEGEND.items() if kind in present]
        return 2 * _MARGIN + sum(30 + len(text) * _SMALL for text in texts)

    def _legend(self, y: float) -> Iterator[str]:
        x = _MARGIN
        present = {box.kind for box in self.folded.boxes}
        for kind, text in LEGEND.items():
            if kind in present:
                yield (
                    f'<rect x="{x:.0f}" y="{y - 10:.0f}" width="12" height="12" rx="2" '
                    f'fill="{FILLS[kind]}" stroke="#444444"/>'
                    f'<text x="{x + 17:.0f}" y="{y:.0f}" font-size="11">{escape(text)}</text>'
                )
                x += 30 + len(text) * _SMALL


def _curve(points: list[_Point]) -> str:
    """Return the path from below the row of the first point to above the row of the last point.

    It passes each intermediate row vertically and moves sideways only between rows, where there are
    no boxes.
    """
    path = f"L{points[0].x:.1f} {points[0].y + _HALF_ROW:.1f}"
    for before, after in itertools.pairwise(points):
        low, high = before.y + _HALF_ROW, after.y - _HALF_ROW
        if after is points[-1]:
            high -= _HEAD
        if abs(before.x - after.x) >= 0.5:
            middle = (low + high) / 2
            path += f" C{before.x:.1f} {middle:.1f} {after.x:.1f} {middle:.1f} "
        else:
            path += " L"
        path += f"{after.x:.1f} {high:.1f}"
        if after is not points[-1]:
            path += f" L{after.x:.1f} {after.y + _HALF_ROW:.1f}"
    return path
