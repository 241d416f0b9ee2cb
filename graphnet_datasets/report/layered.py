"""Layered placement of boxes, with edges that go down and rarely cross.

The method is Sugiyama's: layers by longest path, bends where an edge crosses a layer, orders by the
mean position of the neighbours, swept down and up, and positions that move each box towards the
middle of its neighbours without overlap.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

_NUM_SWEEPS = 12
_BEND_WIDTH = 8.0


@dataclasses.dataclass(frozen=True)
class Layout:
    """Positions of boxes and bends.

    `centres` contains the x of each box, and `layers` its layer. `bends` contains, for each edge
    that crosses layers, its x in each crossed layer from top to bottom.
    """

    centres: tuple[float, ...]
    layers: tuple[int, ...]
    bends: dict[tuple[int, int], tuple[float, ...]]
    width: float


def place(widths: Sequence[float], edges: Sequence[tuple[int, int]], gap: float = 24.0) -> Layout:
    """Place boxes of these widths; edges go from a lower to a higher number.

    >>> layout = place([10.0, 10.0, 10.0, 10.0], [(0, 1), (0, 2), (1, 3), (2, 3)])
    >>> layout.layers, layout.centres[0] == layout.centres[3]
    ((0, 1, 1, 2), True)
    """
    layers = _layers(len(widths), edges)
    graph = _Graph(list(widths), list(layers), edges, gap)
    graph.order()
    graph.spread()
    centres = graph.centres
    left = min((x - w / 2 for x, w in zip(centres, graph.widths, strict=True)), default=0.0)
    shifted = [x - left for x in centres]
    right = max((x + w / 2 for x, w in zip(shifted, graph.widths, strict=True)), default=0.0)
    bends = {
        edge: tuple(shifted[bend] for bend in chain) for edge, chain in graph.bends.items() if chain
    }
    return Layout(tuple(shifted[: len(widths)]), tuple(layers), bends, right)


def _layers(num_boxes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: one below its lowest predecessor."""
    layers = [0] * num_boxes
    for source, target in sorted(edges, key=lambda edge: (edge[1], edge[0])):
        layers[target] = max(layers[target], layers[source] + 1)
    # Move boxes with few or no inputs down to their uses, so that inputs are drawn near their uses.
    above: dict[int, list[int]] = {}
    for source, target in edges:
        above.setdefault(source, []).append(layers[target])
    targets = {target for _, target in edges}
    for box in range(num_boxes):
        if box not in targets and box in above:
            layers[box] = min(above[box]) - 1
    return layers


class _Graph:
    """Boxes and bends, each with a layer, a width and its neighbours above and below."""

    def __init__(
        self,
        widths: list[float],
        layers: list[int],
        edges: Sequence[tuple[int, int]],
        gap: float,
    ) -> None:
        self.widths, self.layers, self.gap = widths, list(layers), gap
        self.bends: dict[tuple[int, int], list[int]] = {}
        self.above: list[list[int]] = [[] for _ in widths]
        self.below: list[list[int]] = [[] for _ in widths]
        for source, target in edges:
            chain = []
            previous = source
            for layer in range(layers[source] + 1, layers[target]):
                bend = len(self.widths)
                self.widths.append(_BEND_WIDTH)
                self.layers.append(layer)
                self.above.append([])
                self.below.append([])
                self._connect(previous, bend)
                chain.append(bend)
                previous = bend
            self._connect(previous, target)
            self.bends[source, target] = chain
        self.rows: list[list[int]] = [[] for _ in range(max(self.layers, default=-1) + 1)]
        for node, layer in enumerate(self.layers):
            self.rows[layer].append(node)
        self.centres = [0.0] * len(self.widths)

    def _connect(self, source: int, target: int) -> None:
        self.below[source].append(target)
        self.above[target].append(source)

    def order(self) -> None:
        """Order each layer to reduce edge crossings."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(_NUM_SWEEPS):
            down = sweep % 2 == 0
            neighbours = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                places = {node: place for other in self.rows for place, node in enumerate(other)}
                means = {
                    node: sum(map(places.__getitem__, near)) / len(near)
                    if (near := neighbours[node])
                    else float(places[node])
                    for node in row
                }
                row.sort(key=means.__getitem__)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def _crossings(self) -> int:
        total = 0
        for row, lower in zip(self.rows, self.rows[1:], strict=False):
            places = {node: place for place, node in enumerate(lower)}
            ends = [sorted(places[neighbour] for neighbour in self.below[node]) for node in row]
            flat = [end for row_ends in ends for end in row_ends]
            total += sum(
                later < earlier for index, earlier in enumerate(flat) for later in flat[index + 1 :]
            )
        return total

    def spread(self) -> None:
        """Assign an x to each node: near its neighbours, in the layer's order, without overlap."""
        for row in self.rows:
            self._set_apart(row, [float(place) * 60.0 for place in range(len(row))])
        for sweep in range(_NUM_SWEEPS):
            down = sweep % 2 == 0
            for row in self.rows if down else reversed(self.rows):
                wanted = []
                for node in row:
                    near = (self.above if down else self.below)[node] or self.above[node]
                    near = near or self.below[node]
                    wanted.append(
                        sum(self.centres[neighbour] for neighbour in near) / len(near)
                        if near
                        else self.centres[node]
                    )
                self._set_apart(row, wanted)

    def _set_apart(self, row: Sequence[int], wanted: Sequence[float]) -> None:
        """Move nodes as little as possible from their desired positions while keeping their
        distances.

        Neighbours that would overlap form a block at the mean of its nodes' desired positions.
        """
        blocks: list[tuple[float, int, float]] = []  # sum of desired starts, number of nodes, width
        for place, node in enumerate(row):
            width = self.widths[node] + self.gap
            blocks.append((wanted[place] - width / 2, 1, width))
            while len(blocks) > 1:
                (wish, count, length), (other, many, more) = blocks[-2:]
                if wish / count + length <= other / many:
                    break
                blocks[-2:] = [(wish + other - many * length, count + many, length + more)]
        place = 0
        for wish, count, _ in blocks:
            x = wish / count
            for node in row[place : place + count]:
                width = self.widths[node] + self.gap
                self.centres[node] = x + width / 2
                x += width
            place += count
