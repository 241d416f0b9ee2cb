"""Fake tensors that replace a module's weights during a capture without weights.

Parameters on the meta device have a shape and statistics (`initialisers`) but no elements. They are
replaced by fake CPU tensors during a capture, because a graph traced on meta would contain
`device="meta"`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ....decoding import load_json
from ....sample import Provenance


def has_weights(module: torch.nn.Module) -> bool:
    """Return whether every parameter and buffer of `module` has elements."""
    tensors = [*module.parameters(), *module.buffers()]
    return not any(tensor.is_meta or isinstance(tensor, FakeTensor) for tensor in tensors)


def unchecked(provenance: Provenance) -> Provenance:
    """Mark a sample as not checked against its call, because the tensors have no elements.

    >>> unchecked(Provenance()).metadata
    '{"is_checked": false}'
    """
    metadata = {**load_json(provenance.metadata, "the metadata of a sample"), "is_checked": False}
    return dataclasses.replace(provenance, metadata=json.dumps(metadata))


@dataclasses.dataclass(frozen=True)
class FakeWeights:
    """The fake tensors that replace a module's weights, and the original tensors."""

    mode: FakeTensorMode
    originals: Mapping[int, torch.Tensor]
    """Original parameters and buffers by `id` of their fake tensor."""


@contextlib.contextmanager
def fake_weights(module: torch.nn.Module) -> Iterator[FakeWeights]:
    """Replace every parameter and buffer of `module` by a fake CPU tensor; restore them on exit.

    A weight that is shared by several modules becomes one fake tensor, so that tied weights stay
    tied in the graph.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv())
    fakes: dict[int, torch.Tensor] = {}
    originals: dict[int, torch.Tensor] = {}
    places: list[tuple[dict[str, Any], str, torch.Tensor]] = []
    for submodule in module.modules():
        for tensors in (submodule._parameters, submodule._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    places.append((tensors, name, tensor))
    try:
        for tensors, name, tensor in places:
            if id(tensor) not in fakes:
                fake = _fake(tensor, mode)
                fakes[id(tensor)], originals[id(fake)] = fake, tensor
            tensors[name] = fakes[id(tensor)]
        yield FakeWeights(mode, originals)
    finally:
        for tensors, name, tensor in places:
            tensors[name] = tensor


def _fake(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    device = "cpu" if tensor.is_meta else tensor.device
    with mode:
        fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(fake, requires_grad=tensor.requires_grad)
    return fake
