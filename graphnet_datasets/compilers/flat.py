"""Modules with positional tensor inputs and a flat tuple of tensor outputs, for export."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import FixedInputError


class FlatModule(torch.nn.Module):
    """Calls `module` with positional tensors and returns the tensors among its outputs.

    Inputs that are not tensors are fixed at their example values. The first call, which happens
    during tracing or export, records the structure of the outputs; `rebuild` restores it.
    """

    def __init__(self, module: Callable[..., Any], example_inputs: Mapping[str, Any]) -> None:
        super().__init__()
        self.module = module
        self.tensor_names = tuple(
            name for name, value in example_inputs.items() if isinstance(value, torch.Tensor)
        )
        self.constants = {
            name: value for name, value in example_inputs.items() if name not in self.tensor_names
        }
        self.fixed_inputs: dict[str, Any] = dict(self.constants)
        """See `Compiler.fixed_inputs`; `export_flat` adds the sizes that the export fixed."""
        # Export restores the attributes it can see after a call, so the record is an opaque object.
        self._learned = _Learned()

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the tensors among the outputs, in order."""
        inputs = dict(zip(self.tensor_names, tensors, strict=True))
        tensors_by_name = {**inputs, **dict(self.named_parameters()), **dict(self.named_buffers())}
        versions = {name: tensor._version for name, tensor in tensors_by_name.items()}
        outputs = self.module(**inputs, **self.constants)
        self._learned.written = [
            name for name, tensor in tensors_by_name.items() if tensor._version != versions[name]
        ]
        leaves, structure = pytree.tree_flatten(outputs)
        self._learned.structure = structure
        self._learned.dtypes = [leaf.dtype for leaf in leaves if isinstance(leaf, torch.Tensor)]
        self._learned.leaves = [
            _SLOT if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves
        ]
        return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))

    def arguments(self, inputs: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
        """Return the input tensors of a call in the order that `forward` expects.

        Raises:
            FixedInputError: An input differs from the value fixed at compilation.
        """
        for name, value in self.constants.items():
            if inputs[name] != value:
                raise FixedInputError(
                    f"The input `{name}` was fixed at {value!r} when the module was compiled; "
                    f"it cannot be {inputs[name]!r} now."
                )
        return tuple(inputs[name] for name in self.tensor_names)

    def rebuild(self, tensors: Sequence[torch.Tensor]) -> Any:
        """Rebuild the module's output structure from the flat tensors."""
        remaining = iter(tensors)
        leaves = [next(remaining) if leaf is _SLOT else leaf for leaf in self._learned.leaves]
        return pytree.tree_unflatten(leaves, self._learned.structure)

    @property
    def written(self) -> list[str]:
        """The inputs and weights that the module wrote to in the first call."""
        return self._learned.written

    @property
    def symbols(self) -> list[Any]:
        """The numbers among the outputs that were symbolic in the first call."""
        kinds = (torch.SymInt, torch.SymFloat, torch.SymBool)
        return [leaf for leaf in self._learned.leaves if isinstance(leaf, kinds)]

    @property
    def dtypes(self) -> list[torch.dtype]:
        """The dtypes of the output tensors in the first call."""
        return self._learned.dtypes

    @property
    def num_tensors(self) -> int:
        """The number of output tensors in the first call."""
        return sum(leaf is _SLOT for leaf in self._learned.leaves)


class _Learned:
    """Facts about the outputs recorded in the first call."""

    structure: Any
    leaves: list[Any]
    dtypes: list[torch.dtype]
    written: list[str]


class _Slot:
    """Placeholder for a tensor in the output structure."""


_SLOT = _Slot()
