"""A scheduled program of TVM as a graph of its syntax tree, for models that learn from it.

It imports nothing: it walks the objects that it is given, by the names of their classes. A node is
a loop, a block, a store, a load or an operation. Its row holds, in this order,

    7   which of loop, block, store, load, arithmetic, call, choice it is
    5   of a loop: serial, parallel, vectorized, unrolled, bound to a thread
    1   of a loop: log2 of its extent
    1   of a loop: log2 of one more than the unrolling that a pragma asks for
    1   log2 of how often it runs: the product of the extents around it
    1   how deep it lies, in tenths
    1   of a block: whether it reduces
    2   of a store or a load: log2 of the buffer's elements, bytes of one
    8   of a store or a load: for each of the four innermost loops around it, from the inside, log2
        of one more than the stride in elements, and whether it is 0 (the loop reuses the element)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import TuningError
from .candidate import ProgramGraph

KINDS = ("loop", "block", "store", "load", "arithmetic", "call", "choice")
NUM_FEATURES = len(KINDS) + 5 + 5 + 2 + 8
MAX_NODES = 20_000

_LOOP_KIND, _EXTENT, _UNROLL, _RUNS, _DEPTH, _REDUCES, _SIZE, _BYTES, _STRIDES = (
    *(7, 12, 13, 14, 15, 16, 17, 18, 19),
)
_NUM_STRIDES = 4
_PRAGMA = "pragma_auto_unroll_max_step"
_REDUCTION = 2
"""`IterVar::iter_type` of a reduction."""


def graph_of_function(function: Any) -> ProgramGraph:
    """Return the graph of a scheduled `PrimFunc`.

    Raises:
        TuningError: it has more than `MAX_NODES` nodes, or is nested too deep to be walked.
    """
    builder = _Builder()
    try:
        builder.statement(function.body, parent=None)
    except RecursionError as error:
        raise TuningError("The program is nested too deep to be made a graph of.") from error
    return builder.graph()


class _Builder:
    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self.parents: list[int | None] = []
        self.loops: list[tuple[int, int]] = []  # hash of the variable and extent, outermost first
        self.values: dict[int, Any] = {}  # of a block's variable: what it is bound to
        self.stores: dict[int, list[int]] = {}
        self.loads: dict[int, list[int]] = {}

    def add(self, kind: str, parent: int | None) -> int:
        if len(self.rows) >= MAX_NODES:
            raise TuningError(f"The program has more than {MAX_NODES} loops and operations.")
        row = np.zeros(NUM_FEATURES, np.float32)
        row[KINDS.index(kind)] = 1
        row[_RUNS] = sum(math.log2(max(extent, 1)) for _, extent in self.loops)
        depth = 0 if parent is None else self.rows[parent][_DEPTH] + 0.1
        row[_DEPTH] = depth
        self.rows.append(row)
        self.parents.append(parent)
        return len(self.rows) - 1

    def statement(self, node: Any, parent: int | None) -> None:
        name = type(node).__name__
        if name == "For":
            self._loop(node, parent)
        elif name in ("SBlockRealize", "BlockRealize"):
            self._block(node, parent)
        elif name == "BufferStore":
            index = self._access("store", node, parent, self.stores)
            self.expression(node.value, index)
        elif name == "SeqStmt":
            for each in node.seq:
                self.statement(each, parent)
        elif name == "IfThenElse":
            index = self.add("choice", parent)
            self.expression(node.condition, index)
            self.statement(node.then_case, index)
            if node.else_case is not None:
                self.statement(node.else_case, index)
        elif name == "Evaluate":
            self.expression(node.value, parent)
        elif getattr(node, "body", None) is not None:  # allocations, attributes, bindings
            self.statement(node.body, parent)

    def _loop(self, node: Any, parent: int | None) -> None:
        index = self.add("loop", parent)
        extent = self.evaluate(node.extent, {})
        row = self.rows[index]
        row[_LOOP_KIND + min(int(node.kind), 4)] = 1
        row[_EXTENT] = math.log2(max(extent, 1))
        steps = dict(node.annotations).get(_PRAGMA)
        row[_UNROLL] = math.log2(1 + int(steps)) if steps is not None else 0
        self.loops.append((hash(node.loop_var), extent))
        self.statement(node.body, index)
        self.loops.pop()

    def _block(self, node: Any, parent: int | None) -> None:
        block = node.block
        if not len(block.iter_vars):  # the root, which everything is in
            self.statement(block.body, parent)
            return
        index = self.add("block", parent)
        for variable, value in zip(block.iter_vars, node.iter_values, strict=True):
            self.values[hash(variable.var)] = value
            self.rows[index][_REDUCES] += int(variable.iter_type) == _REDUCTION
        if block.init is not None:
            self.statement(block.init, index)
        self.statement(block.body, index)

    def expression(self, node: Any, parent: int | None) -> None:
        name = type(node).__name__
        if name in ("Var", "IntImm", "FloatImm", "StringImm", "SizeVar"):
            return
        if name in ("BufferLoad", "TensorLoad"):  # the same, by two names
            self._access("load", node, parent, self.loads)
            return
        if name in ("Call", "Select"):
            index = self.add("choice" if name == "Select" else "call", parent)
        elif name == "Cast":
            index = parent  # the types of loads and stores tell of it
        else:
            index = self.add("arithmetic", parent)
        if name == "Call":
            children = list(node.args)
        else:
            found = (getattr(node, field, None) for field in _CHILDREN)
            children = [each for each in found if each is not None]
        for each in children:
            self.expression(each, index)

    def _access(self, kind: str, node: Any, parent: int | None, found: dict[int, list[int]]) -> int:
        index = self.add(kind, parent)
        buffer = node.source if hasattr(node, "source") else node.buffer
        found.setdefault(hash(buffer), []).append(index)
        shape = [self.evaluate(each, {}) for each in buffer.shape]
        row = self.rows[index]
        row[_SIZE] = math.log2(max(math.prod(shape), 1))
        row[_BYTES] = _bytes_of(str(buffer.dtype))
        inner = self.loops[::-1][:_NUM_STRIDES]
        start = self._address(node, shape, {})
        for position, (variable, _) in enumerate(inner):
            stride = abs(self._address(node, shape, {variable: 1}) - start)
            row[_STRIDES + 2 * position] = math.log2(1 + stride)
            row[_STRIDES + 2 * position + 1] = stride == 0
        return index

    def _address(self, node: Any, shape: list[int], loops: dict[int, int]) -> int:
        """Return the element's index in memory order where the loops' variables have values."""
        address = 0
        for size, each in zip(shape, node.indices, strict=True):
            address = address * max(size, 1) + self.evaluate(each, loops)
        return address

    def evaluate(self, node: Any, loops: dict[int, int]) -> int:
        """Return an index expression's value; variables that are not given are 0.

        What no index of a dense program holds (a load, a call) is 0 as well.
        """
        name = type(node).__name__
        if isinstance(node, int):
            return node
        if name == "IntImm":
            return int(node.value)
        if name in ("Var", "SizeVar"):
            key = hash(node)
            if key in self.values:
                return self.evaluate(self.values[key], loops)
            return loops.get(key, 0)
        if name == "Cast":
            return self.evaluate(node.value, loops)
        operation = _OPERATIONS.get(name)
        if operation is None:
            return 0
        return operation(self.evaluate(node.a, loops), self.evaluate(node.b, loops))

    def graph(self) -> ProgramGraph:
        """Return the nodes with edges down, up, to the next sibling, and from writer to reader."""
        edges: list[tuple[int, int, int]] = []
        last: dict[int | None, int] = {}
        for index, parent in enumerate(self.parents):
            if parent is not None:
                edges += [(parent, index, 0), (index, parent, 1)]
            if parent in last:
                edges.append((last[parent], index, 2))
            last[parent] = index
        for buffer, writers in self.stores.items():
            readers = self.loads.get(buffer, [])
            edges += [(writer, reader, 3) for writer in writers for reader in readers]
        columns = np.array(edges, np.int64).reshape(-1, 3).T
        nodes = np.stack(self.rows) if self.rows else np.zeros((0, NUM_FEATURES), np.float32)
        return ProgramGraph(nodes, columns[:2], columns[2])


_CHILDREN = ("condition", "a", "b", "value", "true_value", "false_value")
_OPERATIONS = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b if b else 0,
    "FloorMod": lambda a, b: a % b if b else 0,
    "Div": lambda a, b: a // b if b else 0,
    "Mod": lambda a, b: a % b if b else 0,
    "Min": min,
    "Max": max,
}


def _bytes_of(dtype: str) -> float:
    """Return the bytes of an element.

    >>> _bytes_of("float32"), _bytes_of("bfloat16"), _bytes_of("bool")
    (4.0, 2.0, 1.0)
    """
    digits = "".join(each for each in dtype if each.isdigit())
    return max(int(digits) / 8, 1.0) if digits else 1.0
