"""Fake tensors that run real kernels only for a short list of operators on single elements.

Torch's fake tensors compute some values: an operator on constants runs for real, and an operator
without a shape rule runs on zeros. Elements stored in a sample are such constants, so inspecting an
untrusted sample could run any kernel on its data. This mode evaluates constants with harmless
operators only and never runs an operator on zeros.
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
    """A `FakeTensorMode` without fallback kernels that only folds operators in `FOLDED`.

    Raises:
        TimeLimitError: If an operator is called after the deadline.
    """

    def __init__(self, deadline: Deadline, phase: str) -> None:
        super().__init__(allow_fallback_kernels=False, shape_env=None, static_shapes=True)
        self._deadline = deadline
        self._what = phase
        self._shared: dict[int, torch.Tensor] = {}  # hidden elements by storage of their views

    def dispatch(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        """Check the deadline and dispatch one operator, hiding constants unless it is folded."""
        self._deadline.check(self._what)
        kwargs = kwargs or {}
        if self._shared and (
            not isinstance(func, torch._ops.OpOverload) or func._schema.is_mutable
        ):
            self._forget_shared(args, kwargs)
        if _is_folded(func, args):
            return self._dispatch(func, types, args, kwargs)
        with self._without_constants(func, args, kwargs) as hidden:
            result = self._dispatch(func, types, args, kwargs)
            if hidden:
                self._note_shared(hidden, result)
            return result

    def _dispatch(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[object],
        kwargs: Mapping[str, object],
    ) -> object:
        """Dispatch one operator, adding a `ShapeEnv` when a size first depends on elements.

        A `ShapeEnv` makes torch import sympy and its compiler, which is slow.
        """
        try:
            return super().dispatch(func, types, args, kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            if self.shape_env is not None:
                raise
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.shape_env = ShapeEnv(allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True)
        return super().dispatch(func, types, args, kwargs)

    def _note_shared(self, shared: list[tuple[FakeTensor, Any]], result: object) -> None:
        """Remember the hidden elements of operands that share memory with the result."""
        result_storages = {
            _memory(tensor) for tensor in pytree.tree_leaves(result) if _is_tensor(tensor)
        }
        for tensor, constant in shared:
            if _memory(tensor) in result_storages:
                self._shared[_memory(tensor)] = constant

    def _forget_shared(self, *operands: Any) -> None:
        """Forget hidden elements that a call may overwrite through a view."""
        for leaf in pytree.arg_tree_leaves(operands):
            constant = self._shared.pop(_memory(leaf), None) if _is_tensor(leaf) else None
            if constant is not None:
                self.fake_tensor_converter.invalidate_constant_aliases(constant)

    def forget_elements(self, *operands: Any) -> None:
        """Forget the elements of operands that a call may have written to."""
        for leaf in pytree.arg_tree_leaves(operands):
            if isinstance(leaf, FakeTensor) and leaf.constant is not None:
                self.fake_tensor_converter.invalidate_constant_aliases(leaf.constant)

    @contextlib.contextmanager
    def _without_constants(
        self, func: Any, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Iterator[list[tuple[FakeTensor, Any]]]:
        """Hide the elements of operands during a call; forget elements that the call may overwrite.

        Yields the operands whose elements are hidden, with their elements.
        """
        if not self.fake_tensor_converter.constant_storage_mapping:
            _refuse_numbers(func, args, kwargs)
            yield []
            return
        leaves = pytree.arg_tree_leaves(*args, **kwargs)
        if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            _refuse_numbers(func, args, kwargs)
        hidden = [
            (leaf, leaf.constant)
            for leaf in leaves
            if isinstance(leaf, FakeTensor) and leaf.constant is not None
        ]
        if hidden and (not isinstance(func, torch._ops.OpOverload) or func._schema.is_mutable):
            for _, constant in hidden:
                self.fake_tensor_converter.invalidate_constant_aliases(constant)
            hidden = []
        for leaf, _ in hidden:
            leaf.constant = None
        try:
            yield hidden
        finally:
            for leaf, constant in hidden:
                leaf.constant = constant


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
    """Reject calls on Python numbers alone, which torch would compute for real."""
    if isinstance(func, torch._ops.OpOverload) and torch._C._should_allow_numbers_as_tensors(
        func._schema.name.partition("::")[2]
    ):
        leaves = pytree.arg_tree_leaves(*args, **kwargs)
        if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            raise NotImplementedError(f"`{func}` of numbers is not computed during a walk.")
