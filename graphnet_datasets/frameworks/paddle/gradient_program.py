"""Reads programs of paddle that hold gradients, whose operators differ from the others'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...sample import Op
from ...sample.arguments import Arg, ListArg, Ref
from .operators import CORE
from .program import ProgramReader, describe_results
from .signatures import argument_names

_SAME_NAME = {"grad_out": "out_grad"}
"""What paddle calls an argument of some functions, and what of their operations."""


class GradientReader(ProgramReader):
    """A reader that takes the operators of gradients too.

    The gradient of a product of elements has no function of its own in paddle's eager mode, and
    that of a concatenation none that works there, so they are written out.
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
            _SAME_NAME.get(each, each)
            for each in argument_names(name.removeprefix("pd_op."), attributes)
        )
        return described if set(described) == set(own) else own

    def _arguments(
        self,
        name: str,
        names: tuple[str, ...],
        operands: list[Arg],
        attributes: Mapping[str, Any],
    ) -> Iterator[Arg]:
        for each, argument in zip(
            names, super()._arguments(name, names, operands, attributes), strict=True
        ):
            # What a batch norm keeps for its gradient on a GPU has no size that is known before.
            yield None if each == "reserve_space" else argument
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
            made = self._append("multiply", (gradient, other))
            lacking = len(shapes[2]) - len(shape)
            axes = [
                axis
                for axis, size in enumerate(shapes[2])
                if axis < lacking or (shape[axis - lacking] == 1 and size != 1)
            ]
            if axes:
                made = self._append("sum", (made, ListArg(tuple(axes)), None, True))
            if lacking or axes:
                made = self._append("reshape", (made, ListArg(tuple(shape))))
            last = self.ops[-1]
            self.ops[-1] = Op(last.target, last.args, (), describe_results([result]))
            self._args[result.hash()] = made

    def _write_out_concatenation(self, operation: Any) -> None:
        sources = operation.operands_source()
        shapes = [list(each.shape) for each in sources[0].type().as_vec_type().as_list()]
        axis = int(sources[2].get_defining_op().attrs()["value"])
        sections = ListArg(tuple(shape[axis] for shape in shapes))
        made = self._append("split", (self.value_of(sources[1]), sections, axis))
        self._args[operation.results()[0].hash()] = made

    def _append(self, name: str, args: tuple[Arg, ...]) -> Ref:
        self.ops.append(Op(f"{CORE}{name}", args))
        return Ref(self.num_inputs + len(self.ops) - 1)
