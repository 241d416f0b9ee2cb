"""Tracing of the joint graph of a sample and its gradients by AOTAutograd."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch._functorch._aot_autograd import descriptors
from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)

from ....errors import GradientError, GraphNetError
from ...gradients import Output
from .calling import Call
from .randomness import Drawn, lift_random_numbers
from .real import trace_real
from .rules import SAME, make_rules, native_kernels, public_transform


@dataclasses.dataclass(frozen=True)
class Joint:
    """A joint graph with its named arguments and ordered outputs.

    `primals` maps argument names to tensor indices of the call, `tangents` to the outputs whose
    gradients they are, and `drawn` to random numbers in drawing order. The first `num_forward`
    of `outputs` are the graph's outputs and the inputs that it wrote to.
    """

    module: torch.fx.GraphModule
    primals: dict[str, int]
    tangents: dict[str, int]
    drawn: dict[str, Drawn]
    outputs: tuple[Output, ...]
    num_forward: int

    def copy_where_needed(self) -> None:
        """Replace `view` by `reshape`, for memory layouts that differ from the fake tensors'."""
        for node in self.module.graph.nodes:
            if node.target is torch.ops.aten.view.default:
                node.target = torch.ops.aten.reshape.default
        self.module.recompile()


def trace_joint(call: Call, tensors: Sequence[torch.Tensor], name: str) -> Joint:
    """Return the joint graph of a call and the gradients of tensors that require them.

    Raises:
        GradientError: If the call cannot be differentiated; the message says where.
    """
    with _located(name), _quietly(), native_kernels():
        try:
            module = _trace_fake(call, tensors)
        except (DataDependentOutputException, DynamicOutputShapeException):
            call.prepare(None, tensors)
            module = trace_real(call, tensors)
    _simplify(module)
    primals, tangents = {}, {}
    drawn = lift_random_numbers(module, name)
    for node in module.graph.nodes:
        if node.op == "placeholder" and node.name not in drawn:
            place = node.meta.get("desc")
            if isinstance(place, descriptors.PlainAOTInput):
                primals[node.name] = place.idx
            elif isinstance(place, descriptors.TangentAOTInput):
                tangents[node.name] = _read_output(place.output, name).index
            else:
                raise GradientError(
                    f"The gradients of `{name}` take `{place}`, which is neither an input of the "
                    "graph nor a gradient of an output. Cut the graph, or skip it."
                )
    outputs = _keep_outputs(module, name)
    num_forward = sum(output.kind != "gradient" for output in outputs)
    if num_forward == len(outputs):
        raise GradientError(
            f"No output of `{name}` depends on an input or weight that has a gradient."
        )
    return Joint(module, primals, tangents, drawn, outputs, num_forward)


def _trace_fake(call: Call, tensors: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    call.prepare(mode, tensors)
    fakes = []
    for tensor in tensors:
        fake = mode.from_tensor(tensor.detach(), static_shapes=True)
        fakes.append(fake.requires_grad_(tensor.requires_grad))
    with contextlib.ExitStack() as stack:
        exported = aot_export_joint_with_descriptors(
            stack, call, tuple(fakes), decompositions=make_rules()
        )
        return exported.graph_module


def _keep_outputs(module: torch.fx.GraphModule, name: str) -> tuple[Output, ...]:
    """Drop outputs that are not tensors, and describe the others."""
    (end,) = (node for node in module.graph.nodes if node.op == "output")
    nodes, places = [], []
    for node, place in zip(end.args[0], end.meta["desc"], strict=True):
        if isinstance(node, torch.fx.Node):
            nodes.append(node)
            places.append(place)
    end.args = (nodes,)
    end.meta["desc"] = places
    module.recompile()
    return tuple(_read_output(place, name) for place in places)


def _read_output(place: Any, name: str) -> Output:
    match place:
        case descriptors.PlainAOTOutput(idx=index):
            return Output("output", index)
        case descriptors.InputMutationAOTOutput(mutated_input=descriptors.PlainAOTInput(idx=index)):
            return Output("written", index)
        case descriptors.GradAOTOutput(grad_of=descriptors.PlainAOTInput(idx=index)):
            return Output("gradient", index)
    raise GradientError(
        f"The gradients of `{name}` give `{place}`, which is neither an output of the graph nor a "
        "gradient of an input. Cut the graph, or skip it."
    )


def _simplify(module: torch.fx.GraphModule) -> None:
    """Replace operators by their checked equivalents, and fake constants by real ones."""
    for node in module.graph.nodes:
        if node.target in SAME:
            node.target = SAME[node.target]
        first = node.args[0] if node.args else None
        source = first.meta.get("val") if isinstance(first, torch.fx.Node) else None
        transform = public_transform(node.target, node.args, source)
        if transform is not None:
            node.target, node.args = transform
        if node.op == "get_attr":
            constant = getattr(module, str(node.target), None)
            if isinstance(constant, FakeTensor) and constant.constant is not None:
                setattr(module, str(node.target), constant.constant)
    _skip_detached(module)
    module.graph.eliminate_dead_code()
    module.recompile()


def _skip_detached(module: torch.fx.GraphModule) -> None:
    """Remove `detach` calls, which have no effect in a graph without autograd."""
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten.detach.default:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _located(name: str) -> Iterator[None]:
    try:
        yield
    except GraphNetError:
        raise
    except Exception as error:  # torch raises various exceptions for graphs it cannot trace
        raise GradientError(f"`{name}` cannot be differentiated: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return the first sentence of torch's message, or name the data-dependent operator."""
    text = str(error).strip() or type(error).__name__
    operator = getattr(error, "func", None)
    first = re.split(r"\n|\. ", text)[0][:300]
    if operator is not None:
        return f"what `{operator}` gives is known by a run alone ({type(error).__name__})."
    return f"{first}."
