"""Planned loop nests as graphs, for models that learn from syntax trees.

A node is a loop, store, load or operation. Its features are, in this order (logs are to base 2):

    4   one-hot kind: loop, store, load, operation
    1   log of the number of executions
    1   depth, divided by ten
    5   of a loop: log of its extent; whether it runs over blocks, is distributed over threads, is
        vectorised, is a reduction
    3   of a store or load: log of the tensor's elements, bytes per element, whether it is gathered
    6   of an operation: one-hot `OPERATIONS`
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...tuning.candidate import EdgeKind, ProgramGraph
from ..codegen.elements import Element, Nest, elements_of
from ..codegen.plans import Plan
from ..compiling import Group
from ..language.expressions import Binary, Call, Expression, Select, Unary, walk
from ..language.instance import Instance

KINDS = ("loop", "store", "load", "operation")
OPERATIONS = ("add", "multiply", "divide", "compare", "call", "other")
NUM_EDGE_FEATURES = 4
"""Features of an edge between a loop and a nested node: log of 1 + the stride, whether the stride
is 0, whether it is 1, log of the loop's extent."""
NUM_FEATURES = 4 + 2 + 5 + 3 + len(OPERATIONS)
_RUNS, _DEPTH, _LOOP, _TENSOR, _OPERATION = 4, 5, 6, 11, 14
_NAMES = {"+": "add", "-": "add", "*": "multiply", "/": "divide", "%": "divide"}


class _Loop(NamedTuple):
    name: str
    extent: int
    is_block: bool = False
    is_parallel: bool = False
    is_vector: bool = False
    is_reduction: bool = False


def graph_of_groups(instance: Instance, groups: Sequence[Group]) -> ProgramGraph:
    """Return the graph of planned groups (see `compiling.plan_groups`)."""
    builder = _Builder(instance)
    for shared, nests, plans in groups:
        outer = [_Loop(dim.name, dim.extent, is_parallel=True) for dim in shared]
        top = builder.loops(outer, None, [])
        for placed, plan in zip(nests, plans, strict=True):
            builder.nest(placed.nest, plan, top)
    return builder.graph()


def _loops_of(nest: Nest, plan: Plan) -> Iterator[_Loop]:
    """Yield the loops of a nest, outermost first: blocks, tiles, reductions."""
    extents, steps = nest.extents, dict(plan.blocks)
    for place, (name, size) in enumerate(plan.blocks):
        is_parallel = place < plan.num_parallel
        yield _Loop(name, -(-extents[name] // size), is_block=True, is_parallel=is_parallel)
    for place, name in enumerate(plan.order):
        is_parallel = not plan.blocks and place < plan.num_parallel
        extent = min(steps.get(name, extents[name]), extents[name])
        yield _Loop(name, extent, is_parallel=is_parallel, is_vector=name == plan.vector)
    for dim in nest.reductions:
        yield _Loop(dim.name, dim.extent, is_vector=dim.name == plan.vector, is_reduction=True)


class _Builder:
    def __init__(self, instance: Instance) -> None:
        self.tensors = {tensor.name: tensor for tensor in instance.tensors}
        self.rows: list[np.ndarray] = []
        self.runs: list[float] = []
        self.edges: list[tuple[int, int, EdgeKind]] = []
        self.edge_rows: dict[int, list[float]] = {}
        self.stores: dict[str, int] = {}
        self.last_child: dict[int | None, int] = {}

    def add(self, kind: str, parent: int | None, log_runs: float) -> int:
        row, node = np.zeros(NUM_FEATURES, np.float32), len(self.rows)
        row[KINDS.index(kind)] = 1
        row[_RUNS] = log_runs
        row[_DEPTH] = 0 if parent is None else self.rows[parent][_DEPTH] + 0.1
        self.rows.append(row)
        self.runs.append(log_runs * math.log(2) if kind == "store" else -math.inf)
        if parent is not None:
            self.edges += [(parent, node, EdgeKind.DOWN), (node, parent, EdgeKind.UP)]
        if parent in self.last_child:
            self.edges.append((self.last_child[parent], node, EdgeKind.NEXT))
        self.last_child[parent] = node
        return node

    def loops(
        self, loops: Sequence[_Loop], parent: int | None, around: list[tuple[int, _Loop]]
    ) -> list[tuple[int, _Loop]]:
        """Add nested loops and return all surrounding loops with their nodes."""
        around = list(around)
        for loop in loops:
            log_runs = sum(math.log2(outer.extent) for _, outer in around)
            node = self.add("loop", around[-1][0] if around else parent, log_runs)
            self.rows[node][_LOOP : _LOOP + 5] = [
                math.log2(loop.extent),
                *map(float, (loop.is_block, loop.is_parallel, loop.is_vector, loop.is_reduction)),
            ]
            around.append((node, loop))
        return around

    def nest(self, nest: Nest, plan: Plan, top: list[tuple[int, _Loop]]) -> None:
        around = self.loops(list(_loops_of(nest, plan)), None, top)
        outside = [pair for pair in around if not pair[1].is_reduction]
        for update in nest.updates:
            self.statement(update.target, update.value, around)
        for assign in nest.epilogues:
            self.statement(assign.target, assign.value, outside)

    def statement(
        self, target: Element, value: Expression, around: list[tuple[int, _Loop]]
    ) -> None:
        log_runs = sum(math.log2(loop.extent) for _, loop in around)
        store = self.add("store", around[-1][0] if around else None, log_runs)
        self.access(store, target, around)
        for element in elements_of(value):
            load = self.add("load", store, log_runs)
            self.access(load, element, around)
            self.edges.append((load, store, EdgeKind.PART))
            if element.tensor in self.stores:
                self.edges.append((self.stores[element.tensor], load, EdgeKind.DATA))
        for name in filter(None, map(_operation, walk(value))):
            node = self.add("operation", store, log_runs)
            self.rows[node][_OPERATION + OPERATIONS.index(name)] = 1
            self.edges.append((node, store, EdgeKind.PART))
        self.stores[target.tensor] = store

    def access(self, node: int, element: Element, around: list[tuple[int, _Loop]]) -> None:
        tensor = self.tensors[element.tensor]
        self.rows[node][_TENSOR : _TENSOR + 3] = [
            math.log2(1 + tensor.num_elements),
            tensor.dtype.bits / 8,
            float(bool(element.gathers)),
        ]
        for place, loop in around:
            stride = abs(element.offset.coefficient(loop.name))
            row = [math.log2(1 + stride), stride == 0, stride == 1, math.log2(loop.extent)]
            for ends in ((place, node, EdgeKind.AROUND), (node, place, EdgeKind.INSIDE)):
                self.edge_rows[len(self.edges)] = row
                self.edges.append(ends)

    def graph(self) -> ProgramGraph:
        edges = np.array([pair[:2] for pair in self.edges], np.int64).reshape(-1, 2).T
        features = np.zeros((len(self.edges), NUM_EDGE_FEATURES), np.float32)
        for place, row in self.edge_rows.items():
            features[place] = row
        return ProgramGraph(
            np.stack(self.rows),
            np.ascontiguousarray(edges),
            np.array([kind for _, _, kind in self.edges], np.int64),
            features,
            np.array(self.runs, np.float32),
        )


def _operation(node: Expression) -> str | None:
    match node:
        case Binary():
            return _NAMES.get(node.operator, "compare")
        case Call():
            return "call"
        case Select() | Unary():
            return "other"
        case _:
            return None
