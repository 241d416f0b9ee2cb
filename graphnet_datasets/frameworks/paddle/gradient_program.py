"""Reader for Paddle programs that contain gradient operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...sample import Op
from ...sample.arguments import Arg, ListArg, Ref
from .operators import CORE
from .program import ProgramReader, describe_results
from .signatures import argument_names

_SAME_NAME = {"grad_out": "out_grad"}
"""Argument names that differ between a Paddle function and its program operation."""


class GradientReader(ProgramReader):
    """A program reader that also supports gradient operators.

    Paddle's eager mode has no function for the gradient of an elementwise product, and its function
    for the gradient of a concatenation does not work. Both gradients are expanded into other
    operators.
    """

    def _read(self, name: str, operation: Any) -> None:
        if name == "pd_op.multiply_grad":
            self._write_out_product(operation)
        elif name == "pd_op.concat_grad":
            self._write_out_concatenation(operation)
        else:
            super()._read(name, operation)

    def _argument_names(
        self, name: str, operation: Any, attributes: Mapping[str, Any]
    ) -> tuple[str, ...]:
        if not name.endswith("_grad"):
            return super()._argument_names(name, operation, attributes)
        own = (*operation.get_input_names(), *operation.get_attr_names())
        described = tuple(
            _SAME_NAME.get(name_in_table, name_in_table)
            for name_in_table in argument_names(name.removeprefix("pd_op."), attributes)
        )
        return described if set(described) == set(own) else own

    def _arguments(
        self,
        name: str,
        names: tuple[str, ...],
        operands: list[Arg],
        attributes: Mapping[str, Any],
    ) -> Iterator[Arg]:
        for argument_name, argument in zip(
            names, super()._arguments(name, names, operands, attributes), strict=True
        ):
            # On a GPU the reserve space of a batch norm has a size that is unknown in advance.
            yield None if argument_name == "reserve_space" else argument
        if name == "pd_op.embedding_grad" and "sparse" not in names:
            yield False

    def _write_out_product(self, operation: Any) -> None:
        first, second, gradient = map(self.value_of, operation.operands_source())
        shapes = [list(source.shape) for source in operation.operands_source()]
        for other, shape, result in zip(
            (second, first), shapes[:2], operation.results(), strict=True
        ):
            if not result.initialized():
                continue
            result_ref = self._append("multiply", (gradient, other))
            num_missing = len(shapes[2]) - len(shape)
            axes = [
                axis
                for axis, size in enumerate(shapes[2])
                if axis < num_missing or (shape[axis - num_missing] == 1 and size != 1)
            ]
            if axes:
                result_ref = self._append("sum", (result_ref, ListArg(tuple(axes)), None, True))
            if num_missing or axes:
                result_ref = self._append("reshape", (result_ref, ListArg(tuple(shape))))
            last = self.ops[-1]
            self.ops[-1] = Op(last.target, last.args, (), describe_results([result]))
            self._args[result.hash()] = result_ref

    def _write_out_concatenation(self, operation: Any) -> None:
        sources = operation.operands_source()
        shapes = [list(source.shape) for source in sources[0].type().as_vec_type().as_list()]
        axis = int(sources[2].get_defining_op().attrs()["value"])
        sections = ListArg(tuple(shape[axis] for shape in shapes))
        result_ref = self._append("split", (self.value_of(sources[1]), sections, axis))
        self._args[operation.results()[0].hash()] = result_ref

    def _append(self, name: str, args: tuple[Arg, ...]) -> Ref:
        self.ops.append(Op(f"{CORE}{name}", args))
        return Ref(self.num_inputs + len(self.ops) - 1)
