"""Captures modules in tests, and runs what was captured on the tensors that the module saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from graphnet_datasets.frameworks.torch.capture.dynamo import source_name
from graphnet_datasets.frameworks.torch.extract import extract
from graphnet_datasets.sample import Input, Op, Sample


def capture_one(module: torch.nn.Module, *args: Any, **options: Any) -> Sample:
    """Return the one sample that a call of `module` gives."""
    wrapped = extract(name="test/module", **options)(module)
    with torch.no_grad():
        wrapped(*args)
    (sample,) = wrapped.samples
    return sample


def targets(sample: Sample) -> list[str]:
    return [op.target for op in sample.ops]


def inputs_by_role(sample: Sample, role: str) -> list[Input]:
    return [each for each in sample.inputs if each.role == role]


def op_named(sample: Sample, target: str) -> Op:
    return next(op for op in sample.ops if op.target == target)


def run_captured(
    sample: Sample, module: torch.nn.Module, data: Sequence[Any], sizes: Mapping[str, int] = {}
) -> Any:
    """Run the materialized sample on the module's own weights and on `data`, in order."""
    from graphnet_datasets.frameworks import materialize

    weights = {
        source_name(path, role): tensor
        for role, named in (
            ("parameter", module.named_parameters()),
            ("buffer", module.named_buffers()),
        )
        for path, tensor in named
    }
    fresh = iter(data)
    inputs: dict[str, Any] = {}
    for name, each in zip(sample.input_names, sample.inputs, strict=True):
        if each.role == "symbol":
            inputs[name] = sizes[each.source_name]
        elif each.role == "constant" and each.data is not None:
            dtype = getattr(torch, str(each.value.dtype))
            flat = torch.frombuffer(bytearray(each.data), dtype=dtype)
            inputs[name] = flat.reshape(sample.shape_of(each.value) or ())
        elif each.source_name in weights:
            inputs[name] = weights[each.source_name]
        else:
            inputs[name] = next(fresh)
    with torch.no_grad():
        return materialize(sample, weights="inputs")(**inputs)
