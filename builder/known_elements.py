"""Captures in which the elements of the example inputs are known.

Models of several kinds of data compute sizes from elements: the grids of image patches, the number
of image tokens in a prompt, the images that are not padding. Fake tensors have no elements, so that
these sizes would be unknown during a capture without weights. Here, tensors that only depend on
inputs and constants keep their elements, and sizes that are computed from them are constants of
the graph, like the shapes of inputs that are not symbols.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorConverter, FakeTensorMode
from torch.utils import _pytree
from torch.utils._mode_utils import no_dispatch

MAX_ELEMENTS = 2**24
"""Maximum number of elements of a tensor that is known."""


@contextlib.contextmanager
def elements_known(inputs: Iterable[Any]) -> Iterator[None]:
    """Make the elements of tensors that only depend on `inputs` known to fake tensors.

    Tensors with symbolic sizes stay unknown, and so does everything computed from weights.

    >>> with elements_known([torch.tensor([2, 3])]), FakeTensorMode():
    ...     torch.arange(6).reshape(2, 3).prod(-1).tolist()
    [0, 60]
    """
    examples = {id(value): value for value in inputs if isinstance(value, torch.Tensor)}
    convert, dispatch = FakeTensorConverter.from_real_tensor, FakeTensorMode.dispatch
    limit = fake_tensor.CONSTANT_NUMEL_LIMIT

    def from_real_tensor(self: Any, fake_mode: Any, tensor: Any, *args: Any, **options: Any) -> Any:
        fake = convert(self, fake_mode, tensor, *args, **options)
        is_input = examples.get(id(tensor)) is tensor
        if is_input and fake.constant is None and not fake._has_symbolic_sizes_strides:
            fake.constant = tensor.clone()
            self.add_constant_storage_mapping(fake)
        return fake

    def dispatched(
        self: FakeTensorMode, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        leaves = _pytree.tree_leaves((args, kwargs))
        if _is_factory(func, leaves):
            with no_dispatch():
                real = func(*args, **(kwargs or {}))
            if isinstance(real, torch.Tensor) and self.may_turn_const(real):
                return convert(self.fake_tensor_converter, self, real, make_constant=True)
        return dispatch(self, func, types, args, kwargs or {})

    fake_tensor.CONSTANT_NUMEL_LIMIT = MAX_ELEMENTS
    converter: Any = FakeTensorConverter
    converter.from_real_tensor = from_real_tensor
    FakeTensorMode.dispatch = dispatched
    try:
        yield
    finally:
        fake_tensor.CONSTANT_NUMEL_LIMIT = limit
        converter.from_real_tensor = convert
        FakeTensorMode.dispatch = dispatch


_FACTORIES = (
    "aten::arange",
    "aten::full",
    "aten::ones",
    "aten::zeros",
    "aten::scalar_tensor",
    "aten::linspace",
    "aten::eye",
    "aten::tril_indices",
    "aten::triu_indices",
)


def _is_factory(func: Any, leaves: list[Any]) -> bool:
    """Return whether a call makes a tensor from numbers alone, on the CPU."""
    return (
        isinstance(func, torch._ops.OpOverload)
        and func._schema.name in _FACTORIES
        and not any(
            isinstance(leaf, torch.Tensor | torch.SymInt | torch.SymFloat) for leaf in leaves
        )
        and all(leaf.type == "cpu" for leaf in leaves if isinstance(leaf, torch.device))
    )
