"""`Sample`: one computational graph as plain, frozen, framework-neutral data.

Values are numbered in the order in which they come to be: the inputs first, in argument order,
then one value per operator. `Ref(i)` stands for value `i`. An operator that gives several tensors
gives one value, a tuple, which later operators take apart (`operator.getitem`), as in torch.fx.

All that is checked here holds for every sample, whether it came from a directory, a row or a live
model; what a target means, and whether it may run, is the business of a framework's operator table.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import html
import math
from collections.abc import Mapping
from typing import Any

from ..terminal import printable
from .arguments import Arg, Ref, iterate_refs
from .invariants import check_sample
from .symbols import Dim, evaluate, free_symbols
from .vocabulary import ITEM_SIZE_BYTES, Calibration, Framework, Kind, Origin, Relation, Role, Task


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """What is known of one SSA value without running the graph.

    `dtype` is a key of `ITEM_SIZE_BYTES`, or None where the value is not a tensor or unknown.
    `shape` holds integers and expressions over the sample's symbols, or is None if unknown.
    `stride` is in elements; None means contiguous or unknown.
    """

    dtype: str | None = None
    shape: tuple[Dim, ...] | None = None
    stride: tuple[Dim, ...] | None = None


def _is_symbolic(value: Value) -> bool:
    return any(isinstance(dim, str) and free_symbols(dim) for dim in value.shape or ())


@dataclasses.dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a tensor's elements, from which inputs are drawn.

    `is_measured` is False where no real tensor was seen and the numbers are the defaults of the
    tensor's role.
    """

    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    is_measured: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Input:
    """One argument of the graph: a data input, a weight, a constant, a symbol or a scalar.

    `data` holds the elements as little-endian bytes in row-major order where they are stored, and
    otherwise is None. `calibrated` are statistics that `calibrate` found: the elements are drawn by
    them, while `statistics` and `data` stay as the record of what was there. A `symbol` has the
    name of its symbol in `source_name`; a `scalar` has dtype int64, float64 or bool, shape () and
    data.
    """

    role: Role
    value: Value
    source_name: str = ""
    device: str = "cpu"
    statistics: Statistics | None = None
    data: bytes | None = dataclasses.field(default=None, repr=False)
    calibrated: Statistics | None = None

    @property
    def origin(self) -> Origin:
        """Where the statistics come from that the elements are drawn by."""
        if self.calibrated is not None:
            return "calibrated"
        is_recorded = self.statistics is not None and self.statistics.is_measured
        return "recorded" if is_recorded or self.data is not None else "initialised"


@dataclasses.dataclass(frozen=True, slots=True)
class Op:
    """One node: the call of `target`, a name in the operator table of the sample's framework.

    `results` has one `Value` per tensor that the call gives (several for a tuple, none for an
    operator without a value), or is None where nothing was recorded. `module` is the dotted path
    of the module that the call came from, or "".
    """

    target: str
    args: tuple[Arg, ...] = ()
    kwargs: tuple[tuple[str, Arg], ...] = ()
    results: tuple[Value, ...] | None = None
    module: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class CustomOperator:
    """An operator that the table of its framework lacks, with the Python text that defines it.

    `name` is qualified (`mylib::scale`) and `schema` says arguments and results in the language of
    torch's operators (`(Tensor x, float factor) -> Tensor`). Running `source` registers the
    operator, which `materialize` does under `trust_remote_code=True` alone, and only where
    `source_hash` is the SHA-256 of the text (see `hash_source`).
    """

    name: str
    schema: str
    source: str = dataclasses.field(repr=False)
    source_hash: str

    @property
    def is_intact(self) -> bool:
        """Whether the source is the one whose hash was recorded."""
        return hash_source(self.source) == self.source_hash


def hash_source(source: str) -> str:
    """Return the SHA-256 of a text in UTF-8, as hexadecimal digits.

    >>> hash_source("import torch")[:16]
    'cf1070d3a16f24b2'
    """
    return hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Symbol:
    """A symbolic dimension with the size it had when captured and its range (None: open)."""

    name: str
    hint: int
    lower: int | None = None
    upper: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Constraint:
    """A relation between two expressions over the symbols, which every workload must meet."""

    left: str
    relation: Relation
    right: str


@dataclasses.dataclass(frozen=True, slots=True)
class Provenance:
    """Where a sample comes from, as far as it is known; "" and None mean unknown.

    `metadata` is a JSON object with what the source recorded and this class has no field for.
    `faults` names what is known to be wrong in the record (marked, never repaired silently).
    `parent_ops` are the operators of the sample `parent_id` that this one was cut out of, by
    position, and `num_occurrences` says how often it occurs where equal ones were merged.
    """

    source: str = ""
    model_name: str = ""
    is_model_name_certain: bool = True
    license: str = ""
    tags: tuple[str, ...] = ()
    capture: str = ""
    framework_version: str = ""
    library_version: str = ""
    mode: str = ""
    parent_id: str = ""
    parent_ops: tuple[int, ...] = ()
    num_occurrences: int = 1
    graph_index: int = 0
    graph_count: int = 1
    break_reason: str = ""
    source_hash: str = ""
    faults: tuple[str, ...] = ()
    metadata: str = "{}"


def _refs_of(op: Op) -> tuple[int, ...]:
    refs: list[int] = []
    for arg in op.args:
        if type(arg) is Ref:
            refs.append(arg.index)
        elif type(arg) not in _PLAIN:
            refs += iterate_refs(arg)
    for _, arg in op.kwargs:
        refs += iterate_refs(arg)
    return tuple(refs)


_PLAIN = frozenset((int, float, bool, type(None)))
_MAX_INPUTS_SHOWN = 4
_MAX_TENSOR_LENGTH = 80


def _describe_tensor(value: Value) -> str:
    dims = "..." if value.shape is None else ", ".join(map(str, value.shape))
    text = f"{value.dtype}[{dims}]"
    return text if len(text) <= _MAX_TENSOR_LENGTH else f"{text[: _MAX_TENSOR_LENGTH - 2]}…]"


@dataclasses.dataclass(frozen=True, repr=False)
class Sample:
    """One computational graph.

    `id` is unique in a dataset and reads like a path (`timm/resnet18`). `kind` is `graph` for a
    whole captured graph; derived samples name what they are (`subgraph`, `backward`, …: `KINDS`).
    `outputs` is the structure that the graph returns, with a `Ref` wherever a value stands.
    `custom_operators` are those that the graph calls and the operator table lacks. `calibration`
    says what `calibrate` did: nothing was tried (""), nothing needed a change (`unneeded`), inputs
    were given calibrated statistics (`calibrated`), or those that were found at other sizes or for
    another graph of the same weights, with which this one was not run (`shared`).

    Raises:
        SampleError: an invariant is broken; the message names the operator or input.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> relu = Sample(
    ...     id="example/relu", framework="torch", task="other",
    ...     inputs=(Input("input", Value("float32", (2, 3))),),
    ...     ops=(Op("torch.relu", (Ref(0),)),), outputs=(Ref(1),))
    >>> relu.input_names, relu.num_ops
    (('input_0',), 1)
    """

    id: str
    framework: Framework
    task: Task
    inputs: tuple[Input, ...]
    ops: tuple[Op, ...]
    outputs: Arg
    symbols: tuple[Symbol, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    kind: Kind = "graph"
    provenance: Provenance = Provenance()
    custom_operators: tuple[CustomOperator, ...] = ()
    calibration: Calibration = ""

    def __post_init__(self) -> None:
        check_sample(self)

    def __repr__(self) -> str:
        """Return a line of what people ask first; the fields show the rest.

        >>> Sample("example/identity", "torch", "other",
        ...     (Input("input", Value("float32", (2, 3))),), (), None)
        Sample('example/identity', torch, 0 operators, 0 parameters, inputs float32[2, 3])
        """
        shown = [each for each in self.inputs if each.role == "input"]
        texts = [_describe_tensor(each.value) for each in shown[:_MAX_INPUTS_SHOWN]]
        if len(shown) > _MAX_INPUTS_SHOWN:
            texts.append(f"and {len(shown) - _MAX_INPUTS_SHOWN} more")
        operators = "1 operator" if self.num_ops == 1 else f"{self.num_ops:,} operators"
        return (
            f"Sample({self.id!r}, {self.framework}, {operators}, {self.num_params:,} parameters, "
            f"inputs {', '.join(texts) or 'none'})"
        )

    def _repr_html_(self) -> str:
        """Return the line and the folded graph as a picture, for notebooks."""
        from ..report.graph_picture import draw_graph

        text = f"<div><p><code>{html.escape(repr(self))}</code></p>{draw_graph(self)}</div>"
        return printable(text)

    @property
    def num_ops(self) -> int:
        """Number of operators."""
        return len(self.ops)

    @property
    def is_dynamic(self) -> bool:
        """Whether the graph is known to run at other sizes than those of its capture.

        That is so where a symbol is an input of its own, or where a dimension of an input depends
        on a symbol and a recorded result follows it. Symbols that are declared while the graph has
        the sizes as literals (GraphNet declares two for almost every graph) make nothing dynamic.
        """
        if any(each.role == "symbol" for each in self.inputs):
            return True
        if not self.symbols or not any(_is_symbolic(each.value) for each in self.inputs):
            return False
        return any(_is_symbolic(value) for op in self.ops for value in op.results or ())

    @functools.cached_property
    def input_names(self) -> tuple[str, ...]:
        """The canonical argument names, generated from role and order (`parameter_0`, …)."""
        counts: dict[str, int] = {}
        names = []
        for each in self.inputs:
            position = counts.get(each.role, 0)
            counts[each.role] = position + 1
            names.append(f"{each.role}_{position}")
        return tuple(names)

    @functools.cached_property
    def hints(self) -> dict[str, int]:
        """The size that each symbol had when the sample was captured."""
        return {symbol.name: symbol.hint for symbol in self.symbols}

    @functools.cached_property
    def custom_operators_by_target(self) -> dict[str, CustomOperator]:
        """The custom operators by the targets under which operators of torch call them."""
        return {
            f"torch.ops.{each.name.replace('::', '.')}{overload}": each
            for each in self.custom_operators
            for overload in ("", ".default")
        }

    @functools.cached_property
    def op_refs(self) -> tuple[tuple[int, ...], ...]:
        """For each operator, the values that it takes, left to right."""
        return tuple([_refs_of(op) for op in self.ops])

    @functools.cached_property
    def last_uses(self) -> tuple[int, ...]:
        """For each value, the operator that uses it last.

        A value that no operator uses dies where it was made: at its own operator, or at -1 for an
        input. One that the outputs hold has `len(ops)`: it outlives the graph.
        """
        first_op = len(self.inputs)
        last = [-1] * first_op + list(range(self.num_ops))
        for position, refs in enumerate(self.op_refs):
            for ref in refs:
                last[ref] = position
        for ref in iterate_refs(self.outputs):
            last[ref] = self.num_ops
        return tuple(last)

    @functools.cached_property
    def dying_values(self) -> tuple[tuple[int, ...], ...]:
        """For each operator, the values that nothing needs after it, its own among them.

        Inputs that no operator takes are in none, nor is what the outputs hold.
        """
        dying: list[list[int]] = [[] for _ in self.ops]
        for value, last_use in enumerate(self.last_uses):
            if 0 <= last_use < self.num_ops:
                dying[last_use].append(value)
        return tuple(map(tuple, dying))

    def shape_of(
        self, value: Value, sizes: Mapping[str, int] | None = None
    ) -> tuple[int, ...] | None:
        """Return the concrete shape of `value` for the given symbol sizes (default: the hints)."""
        if value.shape is None:
            return None
        sizes = self.hints if sizes is None else sizes
        return tuple([dim if type(dim) is int else evaluate(dim, sizes) for dim in value.shape])

    @functools.cached_property
    def num_params(self) -> int:
        """Number of elements in all parameters."""
        return sum(self._num_elements(each) for each in self.inputs if each.role == "parameter")

    @functools.cached_property
    def input_bytes(self) -> int:
        """Bytes of all tensors that the graph takes, weights included."""
        return sum(
            self._num_elements(each) * ITEM_SIZE_BYTES[each.value.dtype]
            for each in self.inputs
            if each.value.dtype is not None and each.role not in ("symbol", "scalar")
        )

    def _num_elements(self, each: Input) -> int:
        return math.prod(self.shape_of(each.value) or ())

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Sample:
        """Return the sample that a row of the `graphs` table holds (see `schema`)."""
        from ..schema import sample_from_row

        return sample_from_row(row)

    def to_row(self) -> dict[str, Any]:
        """Return the row of the `graphs` table for this sample (see `schema`)."""
        from ..schema import sample_to_row

        return sample_to_row(self)

    def to_source(self) -> str:
        """Return Python text for people to read; nothing in this library ever runs it."""
        from ..frameworks import print_source

        return print_source(self)
