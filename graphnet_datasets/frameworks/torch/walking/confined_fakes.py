"""Fake tensors that never run a real kernel but those of a short list, on single elements.

Torch's own fake tensors compute where they can: an operator whose operands are all constants is run
for real, and one without a rule for shapes is run on zeros. A sample's stored elements are such
constants, so writing or inspecting a row would run any kernel on what a stranger put there. Here
constants are computed with by harmless operators alone, and nothing is run on zeros.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.utils import _pytree as pytree

from ....operators import OperatorNames
from ...deadline import Deadline

FOLDED = OperatorNames("folded")

_DIVISIONS = OperatorNames("divides")


class ConfinedFakeMode(FakeTensorMode):
    """A `FakeTensorMode` that neither falls back to real kernels nor folds but `FOLDED`.

    Raises, wherever an operator is called in it:
        TimeLimitError: the deadline is over.
    """

    def __init__(self, deadline: Deadline, what: str) -> None:
        super().__init__(allow_fallback_kernels=False, shape_env=None, static_shapes=True)
        self._deadline = deadline
        self._what = what
        self._shared: dict[int, torch.Tensor] = {}  # elements, by the memory of views without them

    def dispatch(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Call one operator, after the look at the clock and at what it is called with."""
        self._deadline.check(self._what)
        kwargs = kwargs or {}
        if self._shared and (
            not isinstance(func, torch._ops.OpOverload) or func._schema.is_mutable
        ):
            self._forget_shared(args, kwargs)
        if _is_folded(func, args):
            return self._dispatch(func, types, args, kwargs)
        with self._without_constants(func, args, kwargs) as held:
            result = self._dispatch(func, types, args, kwargs)
            if held:
                self._note_shared(held, result)
            return result

    def _dispatch(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        """Call one operator; symbols for sizes that elements decide are there once one needs them.

        With them torch imports sympy and its compiler, which takes as long as all the rest of it.
        """
        try:
            return super().dispatch(func, types, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            if self.shape_env is not None:
                raise
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.shape_env = ShapeEnv(allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True)
        return super().dispatch(func, types, args, kwargs)

    def _note_shared(self, held: list[tuple[FakeTensor, Any]], result: object) -> None:
        """Note which elements lie in the memory of a result that does not have them itself."""
        given = {_memory(each) for each in pytree.tree_leaves(result) if _is_tensor(each)}
        for each, constant in held:
            if _memory(each) in given:
                self._shared[_memory(each)] = constant

    def _forget_shared(self, *operands: Any) -> None:
        """Forget elements that a call may write to under another name."""
        for each in pytree.arg_tree_leaves(operands):
            constant = self._shared.pop(_memory(each), None) if _is_tensor(each) else None
            if constant is not None:
                self.fake_tensor_converter.invalidate_constant_aliases(constant)

    def forget_elements(self, *operands: Any) -> None:
        """Forget the elements of operands that a call may have written to."""
        for each in pytree.arg_tree_leaves(operands):
            if isinstance(each, FakeTensor) and each.constant is not None:
                self.fake_tensor_converter.invalidate_constant_aliases(each.constant)

    @contextlib.contextmanager
    def _without_constants(
        self, func: Any, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Iterator[list[tuple[FakeTensor, Any]]]:
        """Hide the elements of operands; what may be written to is not known afterwards either.

        It gives the operands with the elements that are hidden.
        """
        if not self.fake_tensor_converter.constant_storage_mapping:
            _refuse_numbers(func, args, kwargs)
            yield []
            return
        leaves = pytree.arg_tree_leaves(*args, **kwargs)
        if not any(isinstance(each, torch.Tensor) for each in leaves):
            _refuse_numbers(func, args, kwargs)
        held = [
            (each, each.constant)
            for each in leaves
            if isinstance(each, FakeTensor) and each.constant is not None
        ]
        if held and (not isinstance(func, torch._ops.OpOverload) or func._schema.is_mutable):
            for _, constant in held:
                self.fake_tensor_converter.invalidate_constant_aliases(constant)
            held = []
        for each, _ in held:
            each.constant = None
        try:
            yield held
        finally:
            for each, constant in held:
                each.constant = constant


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def _memory(tensor: Any) -> int:
    return tensor.untyped_storage()._cdata


def _is_folded(func: Any, args: Sequence[object]) -> bool:
    if not isinstance(func, torch._ops.OpOverload) or func.namespace != "aten":
        return False
    name = func._schema.name.removeprefix("aten::")
    if name.rstrip("_") in _DIVISIONS or name in _DIVISIONS:
        return len(args) > 1 and type(args[1]) in (int, float) and args[1] not in (0, -1)
    return name in FOLDED or (name.endswith("_") and name[:-1] in FOLDED)


def _refuse_numbers(func: Any, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Refuse what torch would compute for real out of Python's numbers, such as a division."""
    if isinstance(func, torch._ops.OpOverload) and torch._C._should_allow_numbers_as_tensors(
        func._schema.name.partition("::")[2]
    ):
        leaves = pytree.arg_tree_leaves(*args, **kwargs)
        if not any(isinstance(each, torch.Tensor) for each in leaves):
            raise NotImplementedError(f"`{func}` of numbers is not computed during a walk.")
