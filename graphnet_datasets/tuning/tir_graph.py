"""Program graphs of lowered TVM programs, for models that learn from syntax trees.

This module does not import TVM; it identifies the nodes of the syntax tree by their class names.
Its input is the result of `tir_lowering.lowered`: without blocks and loops of one iteration, and
with compact buffers that have a single index.

A node of the graph is a loop, store, load, operation or choice. Its features are, in this order
(logs are to base 2):

    6   one-hot kind: loop, store, load, arithmetic, call, choice
    1   log of the number of executions: the product of the surrounding extents
    1   depth, divided by ten
    5   of a loop: serial, parallel, vectorized, unrolled, bound to a thread
    5   of a loop: whether TVM unrolls it automatically; logs of its extent, of 1 + the unroll limit
        in steps, of 1 + the stores of its unrolled body, and of the iterations of it and its
        nested loops
    2   of a loop: logs of 1 + the bytes and the cache lines touched by one execution
    4   of a store or load: log of the buffer's elements; bytes per element; whether the program
        allocates the buffer; whether it stores where it loads, as in a reduction
    4   of a store or load, for the innermost loop: log of 1 + the stride, whether the stride is 0,
        whether it is 1, whether the loop is vectorized
    8   of an operation: one-hot kind (`OPERATIONS`); the last one also marks stores of constants
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import TuningError
from .candidate import EdgeKind, ProgramGraph
from .tir_access import Access, access_of, bytes_of, elements_of

KINDS = ("loop", "store", "load", "arithmetic", "call", "choice")
OPERATIONS = ("add", "multiply", "divide", "compare", "exponential", "root", "choice", "other")
NUM_EDGE_FEATURES = 8
"""Features of an edge between a loop and a nested node: log of 1 + the stride, whether the stride
is 0, whether it is 1; logs of the extent, of the bytes and of the cache lines that the loop touches
through the node, of the iterations of the loops in between; number of these loops over ten."""
MAX_NODES = 20_000

_RUNS, _DEPTH, _LOOP_KIND = 6, 7, 8
_UNROLLED, _EXTENT, _MAX_STEPS, _STEPS, _ITERATIONS, _BYTES, _LINES = range(13, 20)
_SIZE, _ITEM, _IS_LOCAL, _UPDATES = range(20, 24)
_STRIDE, _IS_FIXED, _IS_DENSE, _IN_VECTOR = range(24, 28)
_OPERATION = 28
NUM_FEATURES = _OPERATION + len(OPERATIONS)
_PRAGMA = "pragma_auto_unroll_max_step"
_SERIAL, _VECTORIZED, _UNROLLED_KIND = 0, 2, 3
_MAX_UNROLL_DEPTH = 8  # `UnrollLoopConfig`


def graph_of_function(function: Any) -> ProgramGraph:
    """Return the graph of a lowered `PrimFunc`.

    Raises:
        TuningError: it has more than `MAX_NODES` nodes, or is nested too deeply.
    """
    builder = _Builder()
    try:
        builder.statement(function.body, parent=None)
    except RecursionError as error:
        raise TuningError(
            "The program is nested too deeply for a program graph. Leave out this candidate."
        ) from error
    return builder.graph()


class _Steps:
    """State of TVM's unrolling for a part of a program: stores, kept loops, unrolled loops."""

    __slots__ = ("loops", "stores", "unrolled")

    def __init__(self) -> None:
        self.stores = self.loops = self.unrolled = 0


class _Builder:
    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self.parents: list[int | None] = []
        self.loops: list[tuple[int, int]] = []  # hash of the variable and extent, outermost first
        self.loop_nodes: list[int] = []
        self.local: set[int] = set()
        self.stores: dict[int, list[int]] = {}
        self.loads: dict[int, list[int]] = {}
        self.statements: list[int] = []
        self.edges: list[tuple[int, int, int]] = []
        self.edge_rows: dict[int, np.ndarray] = {}  # by the position in `edges`
        self.touched: dict[int, dict[int, tuple[float, float]]] = {}  # loop, buffer: bytes, lines
        self.max_steps = 0
        self.steps = _Steps()

    def add(self, kind: str, parent: int | None) -> int:
        if len(self.rows) >= MAX_NODES:
            raise TuningError(
                f"The program has more than {MAX_NODES} loops and operations. Leave out this "
                "candidate."
            )
        row = np.zeros(NUM_FEATURES, np.float32)
        row[KINDS.index(kind)] = 1
        row[_RUNS] = sum(math.log2(max(extent, 1)) for _, extent in self.loops)
        row[_DEPTH] = 0 if parent is None else self.rows[parent][_DEPTH] + 0.1
        self.rows.append(row)
        self.parents.append(parent)
        return len(self.rows) - 1

    def statement(self, node: Any, parent: int | None) -> None:
        name = type(node).__name__
        if name == "For":
            self._loop(node, parent)
        elif name == "BufferStore":
            self._store(node, parent)
        elif name == "SeqStmt":
            for statement in node.seq:
                self._part(statement, parent)
        elif name == "IfThenElse":
            index = self.add("choice", parent)
            self._condition(node.condition, index)
            self.statement(node.then_case, index)
            if node.else_case is not None:
                self.statement(node.else_case, index)
        elif name == "Evaluate":
            self.expression(node.value, parent, None)
        elif name == "AllocBuffer":
            self.local.add(hash(node.buffer))
        elif name == "AttrStmt" and node.attr_key == _PRAGMA:
            before, self.max_steps = self.max_steps, int(node.value)
            self.statement(node.body, parent)
            self.max_steps = before
        elif getattr(node, "body", None) is not None:  # other attributes, bindings
            self.statement(node.body, parent)

    def _part(self, node: Any, parent: int | None) -> None:
        """Visit one of several statements, for which TVM counts steps separately."""
        before, self.steps = self.steps, _Steps()
        self.statement(node, parent)
        self.steps.stores += before.stores
        self.steps.loops = max(before.loops, self.steps.loops)
        self.steps.unrolled = max(before.unrolled, self.steps.unrolled)

    def _loop(self, node: Any, parent: int | None) -> None:
        index = self.add("loop", parent)
        extent = max(int(getattr(node.extent, "value", 1)), 1)
        kind = min(int(node.kind), 4)
        row = self.rows[index]
        row[_LOOP_KIND + kind] = 1
        row[_EXTENT] = math.log2(extent)
        row[_MAX_STEPS] = math.log2(1 + self.max_steps)
        self.touched[index] = {}
        self.loops.append((hash(node.loop_var), extent))
        self.loop_nodes.append(index)
        first = len(self.rows)
        self.statement(node.body, index)
        self.loops.pop()
        self.loop_nodes.pop()
        steps = self.steps
        if kind != _VECTORIZED:  # TVM vectorizes before it unrolls
            row[_UNROLLED] = kind == _UNROLLED_KIND or (
                kind == _SERIAL
                and not steps.loops
                and steps.unrolled <= _MAX_UNROLL_DEPTH
                and extent * steps.stores <= self.max_steps
            )
            if row[_UNROLLED]:
                steps.stores *= extent
                steps.unrolled += 1
            else:
                steps.loops += 1
        row[_STEPS] = math.log2(1 + steps.stores)
        deepest = max((nested[_RUNS] for nested in self.rows[first:]), default=row[_RUNS])
        row[_ITERATIONS] = deepest - row[_RUNS]
        for column, position in ((_BYTES, 0), (_LINES, 1)):
            amount = sum(amounts[position] for amounts in self.touched[index].values())
            row[column] = math.log2(1 + amount)

    def _store(self, node: Any, parent: int | None) -> None:
        index, key = self._access("store", node, parent)
        self.steps.stores += 1
        self.stores.setdefault(key, []).append(index)
        self.statements.append(index)
        if type(node.value).__name__ in ("FloatImm", "IntImm"):
            self.rows[index][_OPERATION + len(OPERATIONS) - 1] = 1
        before = len(self.loads.get(key, []))
        self.expression(node.value, index, index)
        for load in self.loads.get(key, [])[before:]:
            own = self.rows[load]
            if all(own[_STRIDE : _IN_VECTOR + 1] == self.rows[index][_STRIDE : _IN_VECTOR + 1]):
                own[_UPDATES] = self.rows[index][_UPDATES] = 1

    def expression(self, node: Any, parent: int | None, store: int | None) -> None:
        name = type(node).__name__
        if name in ("Var", "IntImm", "FloatImm", "StringImm", "SizeVar"):
            return
        if name in ("BufferLoad", "TensorLoad"):  # two names of the same node
            index, key = self._access("load", node, parent)
            self.loads.setdefault(key, []).append(index)
            self._part_of(index, store)
            return
        if name == "Cast":  # described by the dtypes of loads and stores
            self.expression(node.value, parent, store)
            return
        operation = _operation_of(node, name)
        if operation == "choice":
            index = self.add("choice", parent)
            branches = (
                list(node.args)
                if name == "Call"
                else [
                    *(node.condition, node.true_value, node.false_value),
                ]
            )
            self._condition(branches[0], index)
            children = branches[1:]
        else:
            index = self.add("call" if name == "Call" else "arithmetic", parent)
            if name == "Call":
                children = list(node.args)
            else:
                operands = (getattr(node, field, None) for field in ("a", "b", "value"))
                children = [operand for operand in operands if operand is not None]
        self.rows[index][_OPERATION + OPERATIONS.index(operation)] = 1
        self._part_of(index, store)
        for child in children:
            self.expression(child, index, store)

    def _condition(self, node: Any, index: int) -> None:
        """Connect a choice with the loops that its condition depends on."""
        self._tie(index, access_of(node, self.loops), 0.0, 1)

    def _part_of(self, index: int, store: int | None) -> None:
        if store is not None:
            self.edges.append((index, store, EdgeKind.PART))

    def _access(self, kind: str, node: Any, parent: int | None) -> tuple[int, int]:
        index = self.add(kind, parent)
        buffer = node.source if hasattr(node, "source") else node.buffer
        key = hash(buffer)
        row = self.rows[index]
        elements, item = elements_of(buffer), bytes_of(str(buffer.dtype))
        row[_SIZE], row[_ITEM] = math.log2(elements), item
        row[_IS_LOCAL] = key in self.local
        access = access_of(node.indices[-1], self.loops)
        if self.loops:
            stride = float(access.strides[-1])
            row[_STRIDE], row[_IS_FIXED] = math.log2(1 + stride), stride == 0
            row[_IS_DENSE] = stride == 1
            innermost = self.rows[self.loop_nodes[-1]]
            row[_IN_VECTOR] = innermost[_LOOP_KIND + _VECTORIZED]
            self._tie(index, access, item, elements)
            sizes, lines = access.touched(item, elements)
            for loop, size, line in zip(self.loop_nodes, sizes, lines, strict=True):
                old = self.touched[loop].get(key, (0.0, 0.0))
                self.touched[loop][key] = (max(old[0], size), max(old[1], line))
        return index, key

    def _tie(self, index: int, access: Access, item: float, elements: int) -> None:
        """Add edges between a node and all surrounding loops."""
        sizes, lines = access.touched(item, elements)
        inner = 0.0
        for position in range(len(self.loops) - 1, -1, -1):
            extent, stride = self.loops[position][1], float(access.strides[position])
            row = np.array(
                [
                    *(math.log2(1 + stride), stride == 0, stride == 1, math.log2(extent)),
                    *(math.log2(1 + sizes[position]), math.log2(lines[position]), inner),
                    (len(self.loops) - 1 - position) / 10,
                ],
                np.float32,
            )
            inner += math.log2(extent)
            loop = self.loop_nodes[position]
            for edge in ((loop, index, EdgeKind.AROUND), (index, loop, EdgeKind.INSIDE)):
                self.edge_rows[len(self.edges)] = row
                self.edges.append(edge)

    def graph(self) -> ProgramGraph:
        """Return the graph with all edges."""
        edges = self.edges
        last: dict[int | None, int] = {}
        for index, parent in enumerate(self.parents):
            if parent is not None:
                edges += [(parent, index, EdgeKind.DOWN), (index, parent, EdgeKind.UP)]
            if parent in last:
                edges.append((last[parent], index, EdgeKind.NEXT))
            last[parent] = index
        for key, writers in self.stores.items():
            readers = self.loads.get(key, [])
            edges += [(writer, reader, EdgeKind.DATA) for writer in writers for reader in readers]
        columns = np.array(edges, np.int64).reshape(-1, 3).T
        features = np.zeros((len(edges), NUM_EDGE_FEATURES), np.float32)
        for position, row in self.edge_rows.items():
            features[position] = row
        nodes = np.stack(self.rows) if self.rows else np.zeros((0, NUM_FEATURES), np.float32)
        log_runs = np.full(len(nodes), -np.inf, np.float32)
        log_runs[self.statements] = nodes[self.statements, _RUNS] * math.log(2)
        return ProgramGraph(nodes, columns[:2], columns[2], features, log_runs)


def _operation_of(node: Any, name: str) -> str:
    if name == "Select":
        return "choice"
    if name != "Call":
        return _BY_CLASS.get(name, "other")
    called = str(getattr(node.op, "name", "")).rpartition(".")[2]
    return _BY_CALL.get(called, "other")


_BY_CLASS = {
    **{"Add": "add", "Sub": "add", "Mul": "multiply", "Div": "divide", "FloorDiv": "divide"},
    **{"Mod": "divide", "FloorMod": "divide", "Max": "compare", "Min": "compare"},
    **dict.fromkeys(("LT", "LE", "GT", "GE", "EQ", "NE", "And", "Or", "Not"), "compare"),
}
_BY_CALL = {
    "if_then_else": "choice",
    **dict.fromkeys(("exp", "log", "tanh", "sigmoid", "erf", "pow", "sin", "cos"), "exponential"),
    **dict.fromkeys(("sqrt", "rsqrt"), "root"),
}
