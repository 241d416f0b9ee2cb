"""Conversion of a program in Paddle's IR (PIR) to the operators of a sample.

In a program, building and unpacking lists of integers and lists of tensors are operations. They
become literals and list arguments of the sample.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...errors import CaptureError, GraphNetError
from ...sample import Op, Value
from ...sample.arguments import Arg, ListArg, Named, Ref
from ...sample.vocabulary import ITEM_SIZE_BYTES
from .operators import CORE, GETITEM, canonical, lookup
from .signatures import argument_names, takes_integers

_RENAMED = {
    "pd_op.batch_norm_": f"{CORE}batch_norm",
    "pd_op.rnn_": f"{CORE}rnn",
    "pd_op.share_data_": "paddle.Tensor.detach",
}
_INPUTS = frozenset({"builtin.parameter", "pd_op.data", "pd_op.feed"})
_IGNORED = frozenset({"builtin.shadow_output", "pd_op.fetch", "builtin.set_parameter"})
_CONTROL_FLOW = frozenset({"pd_op.if", "pd_op.while", "pd_op.select_input", "pd_op.assert"})
_NOT_ARGUMENTS = frozenset(
    {
        "stop_gradient", "op_callstack", "struct_name", "persistable", "fwd_recompute_id",
        "bwd_recompute_id",
    }
)  # fmt: skip
"""Attributes that describe an operation's origin and gradient, and do not affect its results."""

_EXPECTED = Named("place", "expected")


class ProgramReader:
    """Converts the operations of a program block; `value_of` returns the argument for a program
    value.

    `inputs` are the program values of the sample's inputs, in order; `outputs` are the returned
    values.
    """

    def __init__(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.name = name
        self.num_inputs = len(inputs)
        # Values are keyed by `hash()`, since `==` between two values would add an operation to the
        # program.
        self._args: dict[int, Arg] = {
            value.hash(): Ref(index) for index, value in enumerate(inputs)
        }
        self._used = {value.hash() for value in outputs}
        self.ops: list[Op] = []

    def read(self, block: Any) -> None:
        """Append every operation of the block.

        Raises:
            CaptureError: an operation branches on tensors, is not in the table, or has attributes
                that cannot be represented in a sample.
        """
        for operation in block.ops:
            self._used.update(value.hash() for value in operation.operands_source())
        for operation in block.ops:
            name = operation.name()
            if name in _INPUTS or name in _IGNORED:
                continue
            if name in _CONTROL_FLOW:
                raise CaptureError(
                    f"`{self.name}` branches on the values of tensors (`{name}`), which one "
                    "graph cannot represent. Capture the branches as separate modules."
                )
            try:
                self._read(name, operation)
            except CaptureError:
                raise
            except GraphNetError as error:
                raise CaptureError(f"`{self.name}` cannot be captured: {error}") from error

    def value_of(self, value: Any) -> Arg:
        """Return the argument for a program value, or None if the value is uninitialized."""
        return self._args[value.hash()] if value.initialized() else None

    def _read(self, name: str, operation: Any) -> None:
        sources, results = operation.operands_source(), operation.results()
        operands = [self.value_of(source) for source in sources]
        attributes = operation.attrs()
        module = _module_path(attributes.get("struct_name"))
        match name:
            case "pd_op.full_int_array":
                self._args[results[0].hash()] = ListArg(tuple(attributes["value"]))
            case "builtin.combine":
                self._args[results[0].hash()] = ListArg(tuple(operands))
            case "builtin.split" | "builtin.slice":
                self._take_apart(operands[0], results, attributes.get("index"), module)
            case "pd_op.assign_value":
                self._constant(attributes, results, module)
            case _:
                target = _RENAMED.get(name) or canonical(name)
                lookup(target)
                names = self._argument_names(name, operation, attributes)
                args = tuple(self._arguments(name, names, operands, attributes))
                self._emit(Op(target, args, (), describe_results(results), module), results)

    def _emit(self, op: Op, results: list[Any]) -> Ref:
        self.ops.append(op)
        ref = Ref(self.num_inputs + len(self.ops) - 1)
        if len(results) == 1:
            self._args[results[0].hash()] = ref
            return ref
        for index, result in enumerate(results):
            if result.initialized() and result.hash() in self._used:
                self._args[result.hash()] = self._item(ref, index, result, op.module)
        return ref

    def _item(self, whole: Ref, index: int, result: Any, module: str) -> Ref:
        self.ops.append(Op(GETITEM, (whole, index), (), (_value(result),), module))
        return Ref(self.num_inputs + len(self.ops) - 1)

    def _take_apart(self, whole: Arg, results: list[Any], index: int | None, module: str) -> None:
        for position, result in enumerate(results):
            item = position if index is None else index
            if isinstance(whole, ListArg):
                self._args[result.hash()] = whole.items[item]
            elif isinstance(whole, Ref) and result.hash() in self._used:
                self._args[result.hash()] = self._item(whole, item, result, module)

    def _constant(self, attributes: Mapping[str, Any], results: list[Any], module: str) -> None:
        values = ListArg(tuple(attributes["values"]))
        dtype = _literal("dtype", attributes["dtype"])
        self.ops.append(Op("paddle.to_tensor", (values, dtype), (), None, module))
        flat = Ref(self.num_inputs + len(self.ops) - 1)
        shape = ListArg(tuple(attributes["shape"]))
        op = Op("paddle.Tensor.reshape", (flat, shape), (), describe_results(results), module)
        self._emit(op, results)

    def _argument_names(
        self,
        name: str,
        operation: Any,  # noqa: ARG002 - used by subclasses
        attributes: Mapping[str, Any],
    ) -> tuple[str, ...]:
        return argument_names(name.removeprefix("pd_op."), attributes)

    def _arguments(
        self, name: str, names: tuple[str, ...], operands: list[Arg], attributes: Mapping[str, Any]
    ) -> Iterator[Arg]:
        keywords = set(attributes) - _NOT_ARGUMENTS
        if len(names) != len(operands) + len(keywords) or not keywords.issubset(names):
            raise CaptureError(
                f"`{self.name}`: `{name}` has {len(operands)} operands and the attributes "
                f"{', '.join(sorted(keywords)) or 'none'}, which do not fit its arguments "
                f"({', '.join(names)})."
            )
        remaining = iter(operands)
        for name_of_argument in names:
            if name_of_argument in attributes:
                yield _literal(name_of_argument, attributes[name_of_argument])
            else:
                operand = next(remaining)
                yield self._scalars(operand) if takes_integers(name, name_of_argument) else operand

    def _scalars(self, operand: Arg) -> Arg:
        """Return a list of tensors reshaped to scalars, the form in which integers are read from
        tensors."""
        if not isinstance(operand, ListArg):
            return operand
        items = []
        for item in operand.items:
            if isinstance(item, Ref):
                self.ops.append(Op("paddle.Tensor.reshape", (item, ListArg(()))))
                item = Ref(self.num_inputs + len(self.ops) - 1)
            items.append(item)
        return ListArg(tuple(items))


def _module_path(struct_name: str | None) -> str:
    """Return the layer classes that contain an operator: `/Net/Conv2D_7/` becomes `Net.Conv2D`.

    Paddle numbers the layers of a class across the whole process, so the numbers are meaningless.
    """
    parts = (struct_name or "").strip("/").split("/")
    return ".".join(re.sub(r"_\d+\Z", "", part) for part in parts)


def describe_results(results: list[Any]) -> tuple[Value, ...]:
    """Return the dtypes and shapes of an operation's results."""
    if len(results) == 1 and results[0].initialized() and results[0].is_combine():
        items = results[0].type().as_vec_type().as_list()
        return tuple(_described(tuple(item.shape), str(item.dtype)) for item in items)
    return tuple(map(_value, results))


def _value(result: Any) -> Value:
    if not result.initialized() or not result.is_dense_tensor_type():
        return Value()
    return _described(tuple(result.shape), str(result.dtype))


def _described(shape: tuple[int, ...], dtype: str) -> Value:
    name = dtype.rpartition(".")[2].lower()
    known_dtype = name if name in ITEM_SIZE_BYTES else None
    return Value(known_dtype, None if min(shape, default=0) < 0 else shape)


def _literal(name: str, attribute: Any) -> Arg:
    if attribute is None or type(attribute) in (bool, int, float, str):
        return attribute
    if isinstance(attribute, list | tuple):
        return ListArg(tuple(_literal(name, item) for item in attribute))
    kind = type(attribute).__name__
    if kind == "DataType":
        dtype = str(attribute).rpartition(".")[2].lower()
        return Named("dtype", dtype) if dtype in ITEM_SIZE_BYTES else None
    if kind == "Place":
        return Named("place", "cpu") if attribute.is_cpu_place() else _EXPECTED
    raise CaptureError(f"The attribute `{name}` is a `{kind}`, which a sample cannot represent.")
