"""Training: a model with its loss, and the graphs of its gradients and of its training steps.

Three overrides of catalog lines are not arguments of the model. `loss` is the name of a loss in
`torch.nn.functional`, whose target is the input `target`, or `own` for a model that computes its
loss. `gradients` is a kind of gradient graph: `joint`, `forward` or `backward`. `optimizer` is
`sgd` or `adamw`, which updates the parameters with the gradients of a joint graph.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from graphnet_datasets import materialize
from graphnet_datasets.errors import CaptureError
from graphnet_datasets.frameworks.gradients import note_outputs
from graphnet_datasets.frameworks.torch.extract import extract
from graphnet_datasets.frameworks.torch.tensors import make_inputs
from graphnet_datasets.sample import Sample
from graphnet_datasets.transforms import backward

from .catalog import Entry

OWN = "own"
"""The loss of a model that takes labels and returns its loss."""

OPTIONS = ("loss", "gradients", "optimizer")

_BETAS = (0.9, 0.999)
_TANGENT = "tangent_"


class WithLoss(torch.nn.Module):
    """A model that is called with a target and returns its loss."""

    def __init__(self, model: torch.nn.Module, loss: str) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    @property
    def called_model(self) -> torch.nn.Module:
        """The model itself, whose source is recorded with the graph."""
        return getattr(self.model, "called_model", self.model)

    def forward(self, *args: Any, target: Tensor | None = None, **kwargs: Any) -> Tensor:
        """Return the loss of a call; of several outputs, the first tensor is compared."""
        outputs = self.model(*args, **kwargs)
        if self.loss == OWN:
            return outputs.loss
        if not isinstance(outputs, Tensor):
            values = outputs.values() if hasattr(outputs, "values") else outputs
            outputs = next(value for value in values if isinstance(value, Tensor))
        return getattr(torch.nn.functional, self.loss)(outputs, target)


def build_with_loss(entry: Entry, build: Callable[[Entry], torch.nn.Module]) -> torch.nn.Module:
    """Return the entry's model, with its loss if the entry has one."""
    overrides = {key: value for key, value in entry.overrides.items() if key not in OPTIONS}
    model = build(dataclasses.replace(entry, overrides=overrides))
    loss = entry.overrides.get("loss")
    return model if loss is None else WithLoss(model, loss)


def gradients_of(entry: Entry, samples: Sequence[Sample]) -> list[Sample]:
    """Return the gradient graph that the entry asks for, or else the samples themselves.

    Raises:
        CaptureError: the model breaks into several graphs.
    """
    optimizer = entry.overrides.get("optimizer")
    kind = entry.overrides.get("gradients")
    if optimizer is None and kind is None:
        return list(samples)
    if len(samples) > 1:
        raise CaptureError(
            f"`{entry.name}` breaks into {len(samples)} graphs, so none of them has the gradients "
            "of the loss. Choose another model."
        )
    if optimizer is None:
        return [_entry_graph(backward(samples[0], cast(Any, kind)), entry.name)]
    return [with_optimizer(backward(samples[0]), entry.name, optimizer)]


def _entry_graph(sample: Sample, name: str) -> Sample:
    """Return a graph under the name of an entry, without a parent."""
    provenance = dataclasses.replace(sample.provenance, parent_id="")
    return dataclasses.replace(sample, id=name, provenance=provenance)


class _Updating(torch.nn.Module):
    """A joint graph, followed by the update of the parameters by an optimizer of torch.

    The call takes the inputs of the graph without tangents, then the states of the optimizer: one
    tensor per parameter for SGD (momentum), and three for AdamW (moments and number of steps).
    """

    def __init__(self, joint: Sample, optimizer: str) -> None:
        super().__init__()
        self.graph, self.optimizer = materialize(joint), optimizer
        names = {f"gradient of `{name}`": i for i, name in enumerate(joint.input_names)}
        outputs = json.loads(joint.provenance.metadata)["outputs"]
        self.gradients = {names[text]: i for i, text in enumerate(outputs) if text in names}
        self.results = [i for i, text in enumerate(outputs) if text not in names]
        self.outputs = [outputs[i] for i in self.results]
        self.is_tangent = [item.source_name.startswith(_TANGENT) for item in joint.inputs]

    def differentiate(self, inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Return the other results of the joint graph and the gradients of the parameters."""
        data = iter(inputs)
        results = self.graph(
            *(torch.ones(()) if is_tangent else next(data) for is_tangent in self.is_tangent)
        )
        return [results[i] for i in self.results], [results[i] for i in self.gradients.values()]

    def first_states(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the states after a first step."""
        _, gradients = self.differentiate(inputs)
        if self.optimizer == "sgd":
            return [gradient.clone() for gradient in gradients]
        first, second = _BETAS
        return [
            *((1 - first) * gradient for gradient in gradients),
            *((1 - second) * gradient.square() for gradient in gradients),
            *(torch.ones(()) for _ in gradients),
        ]

    def forward(self, *args: Tensor) -> list[Tensor]:
        count = len(self.is_tangent) - sum(self.is_tangent)
        inputs, states = list(args[:count]), list(args[count:])
        results, gradients = self.differentiate(inputs)
        parameters = [inputs[i] for i in self.gradients]
        if self.optimizer == "sgd":
            sgd(
                parameters, gradients, [*states], foreach=False,
                weight_decay=1e-4, momentum=0.9, lr=0.1, dampening=0.0, nesterov=False,
                maximize=False,
            )  # fmt: skip
        else:
            size = len(parameters)
            adamw(
                parameters, gradients, states[:size], states[size : 2 * size], [],
                states[2 * size :], foreach=False, amsgrad=False,
                capturable=torch.compiler.is_compiling(),  # only then are steps left in tensors
                beta1=_BETAS[0], beta2=_BETAS[1], lr=1e-3, weight_decay=0.01, eps=1e-8,
                maximize=False,
            )  # fmt: skip
        return results


def with_optimizer(joint: Sample, name: str, optimizer: str) -> Sample:
    """Return a training step: a joint graph of a loss and the update of its parameters."""
    step = _Updating(joint, optimizer)
    inputs = [item for item in joint.inputs if not item.source_name.startswith(_TANGENT)]
    tensors = [
        tensor
        for item, tensor in zip(joint.inputs, make_inputs(joint, 0).values(), strict=True)
        if isinstance(tensor, Tensor) and not item.source_name.startswith(_TANGENT)
    ]
    with torch.no_grad():
        states = step.first_states(tensors)
        wrapped = extract(name=name, task=joint.task, provenance=joint.provenance)(step)
        wrapped(*tensors, *states)
    (sample,) = wrapped.samples
    parameters = [joint.inputs[i].source_name for i in step.gradients]
    kinds = ("momentum",) if optimizer == "sgd" else ("exp_avg", "exp_avg_sq", "step")
    states_names = [f"{kind}_{name}" for kind in kinds for name in parameters]
    renamed = []
    for item in sample.inputs:
        place = re.fullmatch(r"L_args_(\d+)_", item.source_name)
        if place is not None:
            index = int(place[1])
            if index < len(inputs):
                item = dataclasses.replace(inputs[index], value=item.value)
            else:
                source_name = states_names[index - len(inputs)]
                item = dataclasses.replace(item, role="buffer", source_name=source_name)
        renamed.append(item)
    metadata = note_outputs(joint.provenance.metadata, step.outputs)
    provenance = dataclasses.replace(sample.provenance, metadata=metadata)
    sample = dataclasses.replace(sample, inputs=tuple(renamed), kind="joint", provenance=provenance)
    return _entry_graph(sample, name)
