"""`Sample`: one computational graph as plain, frozen, framework-neutral data.

Values are numbered in order of creation: the inputs first, in argument order, then one value per
operator. `Ref(i)` refers to value `i`. An operator with several result tensors creates one value, a
tuple, which later operators take apart (`operator.getitem`), as in torch.fx.

The checks here apply to every sample, whether from a directory, a row or a live model. The meaning
of a target, and whether it may run, are defined by a framework's operator table.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import html
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..terminal import printable
from .arguments import Arg, Graph, Ref, iterate_refs
from .invariants import check_sample
from .symbols import Dim, evaluate, free_symbols
from .vocabulary import (
    ITEM_SIZE_BYTES,
    Calibration,
    Framework,
    Kind,
    Origin,
    Relation,
    Role,
    Signal,
    Task,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """The dtype, shape and strides of an SSA value, as far as known without running the graph.

    `dtype` is a key of `ITEM_SIZE_BYTES`, or None for unknown dtypes and values that are not
    tensors. `shape` has integers and expressions over the sample's symbols, or equals None if
    unknown. `stride` is in elements; None means contiguous or unknown.
    """

    dtype: str | None = None
    shape: tuple[Dim, ...] | None = None
    stride: tuple[Dim, ...] | None = None


def _is_symbolic(value: Value) -> bool:
    return any(isinstance(dim, str) and free_symbols(dim) for dim in value.shape or ())


@dataclasses.dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of a tensor's elements, from which inputs are drawn.

    `is_measured` is False if the numbers are defaults of the tensor's role, without a real tensor.
    """

    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    is_measured: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Input:
    """One argument of the graph: a data input, a weight, a constant, a symbol or a scalar.

    `data` are stored elements as little-endian bytes in row-major order, or None. `calibrated` are
    statistics found by `calibrate`, from which elements are drawn; `statistics` and `data` remain
    as recorded. With a `signal`, elements have the structure of natural data of that kind, and
    stored elements only state their roles. A `symbol` has its symbol's name in `source_name`. A
    `scalar` has dtype int64, float64 or bool, shape () and data.
    """

    role: Role
    value: Value
    source_name: str = ""
    device: str = "cpu"
    statistics: Statistics | None = None
    data: bytes | None = dataclasses.field(default=None, repr=False)
    calibrated: Statistics | None = None
    signal: Signal = dataclasses.field(default="", repr=False)

    @property
    def origin(self) -> Origin:
        """The origin of the statistics from which the elements are drawn."""
        if self.calibrated is not None:
            return "calibrated"
        is_recorded = self.statistics is not None and self.statistics.is_measured
        return "recorded" if is_recorded or self.data is not None else "initialised"


@dataclasses.dataclass(frozen=True, slots=True)
class Op:
    """One node: the call of `target`, a name in the operator table of the sample's framework.

    `results` has one `Value` per result tensor (several for a tuple, empty without results), or
    equals None if nothing was recorded. `module` is the dotted path of the calling module, or "".
    """

    target: str
    args: tuple[Arg, ...] = ()
    kwargs: tuple[tuple[str, Arg], ...] = ()
    results: tuple[Value, ...] | None = None
    module: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class CustomOperator:
    """An operator missing from the table of its framework, with its Python source code.

    `name` is qualified (`mylib::scale`), and `schema` declares arguments and results in the syntax
    of torch operators (`(Tensor x, float factor) -> Tensor`). Running `source` registers the
    operator. `materialize` does so only under `trust_remote_code=True`, and only if `source_hash`
    is the SHA-256 of the source (see `hash_source`).
    """

    name: str
    schema: str
    source: str = dataclasses.field(repr=False)
    source_hash: str

    @property
    def is_intact(self) -> bool:
        """True if the source matches the recorded hash."""
        return hash_source(self.source) == self.source_hash


def hash_source(source: str) -> str:
    """Return the SHA-256 of a string in UTF-8 as hexadecimal digits.

    >>> hash_source("import torch")[:16]
    'cf1070d3a16f24b2'
    """
    return hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Symbol:
    """A symbolic dimension with its size at capture and its range (None for unbounded)."""

    name: str
    hint: int
    lower: int | None = None
    upper: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Constraint:
    """A relation between two expressions over symbols, which every workload must satisfy."""

    left: str
    relation: Relation
    right: str


@dataclasses.dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a sample, as far as known; "" and None mean unknown.

    `metadata` is a JSON object of recorded data without a field in this class. `faults` lists known
    errors in the record, which are marked but not repaired. `parent_ops` are the positions of the
    operators in the sample `parent_id` from which this sample was cut, and `num_occurrences` counts
    the occurrences of merged equal samples.
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
_BODY_INPUT = Input("input", Value("float32", ()))


def _body_sample(sample: Sample, body: Graph) -> Sample:
    return Sample(
        # The id of the sample may already have the maximum length.
        f"{sample.id[:400].rstrip('/')}/body",
        sample.framework,
        sample.task,
        (_BODY_INPUT,) * body.num_inputs,
        body.ops,
        body.outputs,
        sample.symbols,
        custom_operators=sample.custom_operators,
    )


_MAX_INPUTS_SHOWN = 4
_MAX_TENSOR_LENGTH = 80


def _describe_tensor(value: Value) -> str:
    dims = "..." if value.shape is None else ", ".join(map(str, value.shape))
    text = f"{value.dtype}[{dims}]"
    return text if len(text) <= _MAX_TENSOR_LENGTH else f"{text[: _MAX_TENSOR_LENGTH - 2]}…]"


@dataclasses.dataclass(frozen=True, repr=False)
class Sample:
    """One computational graph.

    `id` is unique in a dataset and resembles a path (`timm/resnet18`). `kind` is `graph` for a
    whole captured graph, and another of `KINDS` for derived samples (`subgraph`, `backward`, …).
    `outputs` is the returned structure, with a `Ref` for each value. `custom_operators` are called
    operators that are missing from the operator table. `calibration` is the result of `calibrate`:
    not tried (""), no change needed (`unneeded`), inputs with calibrated statistics (`calibrated`),
    or statistics found at other sizes or for another graph with the same weights (`shared`).

    Raises:
        SampleError: an invariant is violated; the message names the operator or input.

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
        """Return a one-line summary.

        >>> Sample("example/identity", "torch", "other",
        ...     (Input("input", Value("float32", (2, 3))),), (), None)
        Sample('example/identity', torch, 0 operators, 0 parameters, inputs float32[2, 3])
        """
        shown = [argument for argument in self.inputs if argument.role == "input"]
        texts = [_describe_tensor(argument.value) for argument in shown[:_MAX_INPUTS_SHOWN]]
        if len(shown) > _MAX_INPUTS_SHOWN:
            texts.append(f"and {len(shown) - _MAX_INPUTS_SHOWN} more")
        operators = "1 operator" if self.num_ops == 1 else f"{self.num_ops:,} operators"
        return (
            f"Sample({self.id!r}, {self.framework}, {operators}, {self.num_params:,} parameters, "
            f"inputs {', '.join(texts) or 'none'})"
        )

    def _repr_html_(self) -> str:
        """Return the summary and an image of the folded graph, for notebooks."""
        from ..report.graph_picture import draw_graph

        text = f"<div><p><code>{html.escape(repr(self))}</code></p>{draw_graph(self)}</div>"
        return printable(text)

    @property
    def num_ops(self) -> int:
        """Number of operators."""
        return len(self.ops)

    @property
    def is_dynamic(self) -> bool:
        """True if the graph is known to run at other sizes than at capture.

        This requires a symbol input, or an input dimension that depends on a symbol together with a
        recorded result that does. Declared symbols alone are not enough, because a graph may have
        the sizes as literals (GraphNet declares two symbols for almost every graph).
        """
        if any(argument.role == "symbol" for argument in self.inputs):
            return True
        if not self.symbols or not any(_is_symbolic(argument.value) for argument in self.inputs):
            return False
        return any(_is_symbolic(value) for op in self.ops for value in op.results or ())

    @functools.cached_property
    def input_names(self) -> tuple[str, ...]:
        """The canonical argument names, generated from role and order (`parameter_0`, …)."""
        counts: dict[str, int] = {}
        names = []
        for argument in self.inputs:
            position = counts.get(argument.role, 0)
            counts[argument.role] = position + 1
            names.append(f"{argument.role}_{position}")
        return tuple(names)

    @functools.cached_property
    def hints(self) -> dict[str, int]:
        """The size of each symbol at capture."""
        return {symbol.name: symbol.hint for symbol in self.symbols}

    @functools.cached_property
    def custom_operators_by_target(self) -> dict[str, CustomOperator]:
        """The custom operators by the targets of their calls in torch."""
        return {
            f"torch.ops.{operator.name.replace('::', '.')}{overload}": operator
            for operator in self.custom_operators
            for overload in ("", ".default")
        }

    @functools.cached_property
    def bodies(self) -> Mapping[int, tuple[Sample, ...]]:
        """The bodies of operators such as `cond`, by the operator's position, as samples.

        Their inputs have no shapes of their own: each is a placeholder of dtype float32. Operators
        of bodies do not count in `num_ops`.
        """
        return {
            position: tuple([_body_sample(self, arg) for arg in op.args if type(arg) is Graph])
            for position, op in enumerate(self.ops)
            if Graph in map(type, op.args)
        }

    def iterate_bodies(self) -> Iterator[Sample]:
        """Yield the bodies of all operators in order, without bodies inside of bodies."""
        for bodies in self.bodies.values():
            yield from bodies

    def iterate_ops(self) -> Iterator[Op]:
        """Yield the operators of the graph and of all bodies."""
        yield from self.ops
        for body in self.iterate_bodies():
            yield from body.iterate_ops()

    @functools.cached_property
    def op_refs(self) -> tuple[tuple[int, ...], ...]:
        """The values that each operator uses, left to right."""
        return tuple([_refs_of(op) for op in self.ops])

    def count_results(self, leaf: Arg) -> int:
        """Return the number of flat outputs of a leaf of `outputs`.

        A reference to an operator with several recorded tensors has one per tensor. An operator
        without tensors returns a number.
        """
        position = leaf.index - len(self.inputs) if isinstance(leaf, Ref) else -1
        results = self.ops[position].results if position >= 0 else None
        return max(1, len(results or ()))

    @functools.cached_property
    def last_uses(self) -> tuple[int, ...]:
        """The last operator that uses each value.

        An unused value is assigned its own operator, or -1 for an input. A value in the outputs is
        assigned `len(ops)`, since it outlives the graph.
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
        """The values that are no longer needed after each operator, including its own.

        Unused inputs and outputs of the graph do not occur.
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
        return sum(
            self._num_elements(argument) for argument in self.inputs if argument.role == "parameter"
        )

    @functools.cached_property
    def input_bytes(self) -> int:
        """Bytes of all input tensors, including weights."""
        return sum(
            self._num_elements(argument) * ITEM_SIZE_BYTES[argument.value.dtype]
            for argument in self.inputs
            if argument.value.dtype is not None and argument.role not in ("symbol", "scalar")
        )

    def _num_elements(self, argument: Input) -> int:
        return math.prod(self.shape_of(argument.value) or ())

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Sample:
        """Return the sample of a row of the `graphs` table (see `schema`)."""
        from ..schema import sample_from_row

        return sample_from_row(row)

    def to_row(self) -> dict[str, Any]:
        """Return the row of the `graphs` table for this sample (see `schema`)."""
        from ..schema import sample_to_row

        return sample_to_row(self)

    def to_source(self) -> str:
        """Return Python source code for reading; this library never runs it."""
        from ..frameworks import print_source

        return print_source(self)
