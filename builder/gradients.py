"""Comparison of the gradients of a captured graph with those of its model."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from graphnet_datasets import materialize
from graphnet_datasets.analysis.randomness import is_random
from graphnet_datasets.errors import GradientError
from graphnet_datasets.frameworks.torch.capture.dynamo import source_name
from graphnet_datasets.frameworks.torch.capture.replay import difference, leaves
from graphnet_datasets.frameworks.torch.statistics import measure
from graphnet_datasets.frameworks.torch.tensors import make_inputs
from graphnet_datasets.sample import Input, Sample
from graphnet_datasets.transforms import backward

_FACTOR = 10.0
"""Accepted difference of gradients relative to that of outputs. The joint graph decomposes layers
and adds in another order."""


def check_gradients(
    model: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    samples: Sequence[Sample],
) -> None:
    """Make the joint graph of each sample, and compare its gradients with autograd's of the model.

    `backward` compares each joint graph with its sample on generated tensors. A sample of the whole
    model without random draws is also compared with the model, on the tensors of the call.

    Raises:
        GradientError: A sample has no gradients, or they differ.
    """
    joints = [backward(sample, allow_unchecked_operators=True) for sample in samples]
    if len(samples) == 1 and not is_random(samples[0]):
        _compare(model, args, kwargs, samples[0], joints[0])


def _compare(
    model: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    sample: Sample,
    joint: Sample,
) -> None:
    named = {
        source_name(path, "parameter"): parameter
        for path, parameter in model.named_parameters(remove_duplicate=False)
    }
    named |= {source_name(path, "buffer"): buffer.clone() for path, buffer in model.named_buffers()}
    data = [leaf for _, leaf in leaves([*args, *kwargs.values()]) if torch.is_tensor(leaf)]
    inputs = make_inputs(sample, 0)
    for name, item in zip(sample.input_names, sample.inputs, strict=True):
        if item.source_name in named:
            inputs[name] = named[item.source_name].detach().clone()
        elif item.role == "input":
            inputs[name] = _find(item, data).detach().clone()
    outputs = model(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    output_tensors = [leaf for _, leaf in leaves(outputs) if torch.is_tensor(leaf)]
    with torch.no_grad():
        results = materialize(sample, allow_unchecked_operators=True)(**copy.deepcopy(inputs))
    pairs = []  # the index of a result of the graph, and the equal output of the model
    for index, (_, result) in enumerate(leaves(results)):
        output = next((leaf for leaf in output_tensors if not difference(result, leaf)), None)
        if output is not None and output.requires_grad:
            pairs.append((index, output))
    if not pairs:
        raise GradientError(f"`{sample.id}` has no output with a gradient.")
    generator = torch.Generator().manual_seed(0)
    tangents = {
        f"tangent_{index}": torch.randn(output.shape, generator=generator).to(output.dtype)
        for index, output in pairs
    }
    sources = (item.source_name for item in sample.inputs)
    values = dict(zip(sources, inputs.values(), strict=True)) | tangents
    arguments = make_inputs(joint, 0)
    for name, item in zip(joint.input_names, joint.inputs, strict=True):
        argument: Any = arguments[name]
        if item.source_name in values:
            arguments[name] = values[item.source_name]
        elif item.source_name.startswith("tangent_"):
            arguments[name] = torch.zeros_like(argument)
    with torch.no_grad():
        actual = materialize(joint, allow_unchecked_operators=True)(**arguments)
    weights = {
        f"gradient of `{name}`": named[item.source_name]
        for name, item in zip(sample.input_names, sample.inputs, strict=True)
        if item.role == "parameter" and named[item.source_name].requires_grad
    }
    gradients = torch.autograd.grad(
        [output for _, output in pairs], list(weights.values()), list(tangents.values()),
        allow_unused=True,
    )  # fmt: skip
    texts = json.loads(joint.provenance.metadata)["outputs"]
    computed = dict(zip(texts, actual, strict=True))
    for text, gradient in zip(weights, gradients, strict=True):
        if gradient is not None and (problem := difference(computed[text], gradient, _FACTOR)):
            raise GradientError(f"The {text} of `{sample.id}` {problem}, compared with the model.")


def _find(item: Input, data: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the tensor of the call that has the recorded dtype and statistics of an input."""
    for tensor in data:
        is_same_dtype = str(tensor.dtype).removeprefix("torch.") == item.value.dtype
        if is_same_dtype and measure(tensor) == item.statistics:
            return tensor
    raise GradientError(f"No tensor of the call has the statistics of `{item.source_name}`.")
