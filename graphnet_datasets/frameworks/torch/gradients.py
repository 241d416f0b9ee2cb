"""Joint, forward and backward graphs of a torch sample, traced by AOTAutograd."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from functorch.compile import default_partition, min_cut_rematerialization_partition

from ...errors import CaptureError, GradientError, GraphNetError
from ...sample import Input, Sample, Value
from ...sample.arguments import ListArg
from ...sample.vocabulary import Kind
from ..gradients import (
    LARGEST_T,
    TANGENT,
    Gradients,
    Of,
    Output,
    Partition,
    choose_inputs,
    differs,
    note_outputs,
)
from .capture.convert import Binding, Naming, convert
from .differentiating.calling import Call
from .differentiating.joint import Joint, trace_joint
from .differentiating.trial import Trial, t_of, try_eager
from .materialize import materialize
from .statistics import elements_to_store, measure
from .tensors import dtype_of, make_inputs
from .walking.recurrent import kind_of

_PARTITIONS: Mapping[str, Callable[..., Any]] = {
    "default": default_partition,
    "min_cut": min_cut_rematerialization_partition,
}


def differentiate(
    sample: Sample,
    *,
    of: Of = "auto",
    partition: Partition = "default",
    seed: int = 0,
    check: bool = True,
    allow_unchecked_operators: bool = False,
) -> Gradients:
    """Return the gradient graphs of a sample; see `graphnet_datasets.transforms`.

    Raises:
        GradientError: If there are no gradients, the sample cannot be traced, or the graphs do not
            match eager.
        UnknownOperatorError, UncheckedOperatorError, MemoryLimitError, MaterializeError: As in
            `materialize`.
    """
    if sample.custom_operators:
        raise GradientError(
            f"`{sample.id}` calls custom operators, whose gradients nobody knows. Leave it out."
        )
    with _plain_recurrence(sample), torch.inference_mode(False), torch.enable_grad():
        return _differentiate(
            sample,
            of=of,
            partition=partition,
            seed=seed,
            check=check,
            allow_unchecked_operators=allow_unchecked_operators,
        )


@contextlib.contextmanager
def _plain_recurrence(sample: Sample) -> Iterator[None]:
    """Disable oneDNN for recurrent layers, because autograd cannot decompose its fused layers."""
    was_enabled = torch._C._get_mkldnn_enabled()
    if any(kind_of(op.target) is not None for op in sample.ops):
        torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(was_enabled)


def _differentiate(
    sample: Sample,
    *,
    of: Of,
    partition: Partition,
    seed: int,
    check: bool,
    allow_unchecked_operators: bool,
) -> Gradients:
    options: dict[str, Any] = {"allow_unchecked_operators": allow_unchecked_operators}
    graph = materialize(sample, **options)
    inputs = make_inputs(sample, seed)
    wanted = choose_inputs(sample, of)
    call = Call(graph, sample, inputs)
    values: list[Any] = list(inputs.values())
    tensors = [values[position].requires_grad_(position in wanted) for position in call.positions]
    joint = trace_joint(call, tensors, sample.id)
    trial = try_eager(call, tensors, sample.id, seed) if check else None
    making = _Making(sample, call, joint, tensors, trial)
    if trial is None:
        return Gradients(making.joint(), *making.parts(_PARTITIONS[partition]))
    try:
        return making.checked(_PARTITIONS[partition], options)
    except _StrideError:
        joint.copy_where_needed()
        return making.checked(_PARTITIONS[partition], options)


class _StrideError(GradientError):
    """A view was traced with strides that differ from those of the kernel's result."""


class _Making:
    """Creates samples from a joint graph, and holds the data of their inputs."""

    def __init__(
        self,
        sample: Sample,
        call: Call,
        joint: Joint,
        tensors: Sequence[torch.Tensor],
        trial: Trial | None,
    ) -> None:
        self.sample = sample
        self.call = call
        self.traced = joint
        self.tensors = tensors
        self.trial = trial
        self.saved: dict[str, torch.Tensor] = {}
        self.arguments: dict[str, tuple[str, ...]] = {}

    def joint(self) -> Sample:
        """Return the sample that computes outputs and gradients."""
        return self._convert("joint", self.traced.module, self.traced.outputs)

    def parts(self, cut: Callable[..., Any]) -> tuple[Sample, Sample]:
        """Split the joint graph into forward and backward samples."""
        traced = self.traced
        forward, backward = cut(traced.module, (), num_fwd_outputs=traced.num_forward)
        (end,) = (node for node in forward.graph.nodes if node.op == "output")
        outputs = list(end.args[0])
        own, saved = outputs[: traced.num_forward], outputs[traced.num_forward :]
        saved_nodes = [
            node
            for node in saved
            if isinstance(node, torch.fx.Node) and node.op != "placeholder" and node not in own
        ]
        end.args = ([*own, *saved_nodes],)
        self.given = [getattr(node, "name", "") for node in [*own, *saved_nodes]]
        names = [
            *traced.outputs[: traced.num_forward],
            *(f"saved {node.name}" for node in saved_nodes),
        ]
        return (
            self._convert("forward", forward, names),
            self._convert("backward", backward, traced.outputs[traced.num_forward :]),
        )

    def checked(self, cut: Callable[..., Any], options: Mapping[str, Any]) -> Gradients:
        """Return all graphs after running each of them.

        Raises:
            GradientError: If the results do not match eager autograd.
        """
        whole = self.joint()
        forward, backward = self.parts(cut)
        largest = self.check(whole, forward, backward, options)
        return Gradients(whole, forward, self.measured(backward), largest)

    def check(
        self, joint: Sample, forward: Sample, backward: Sample, options: Mapping[str, Any]
    ) -> float:
        """Run the graphs, compare them with eager and return the largest tolerance needed."""
        trial, traced = self.trial, self.traced
        assert trial is not None  # noqa: S101 - guaranteed by the caller
        constants = self._known(trial)
        expected = [self._expected(trial, output) for output in traced.outputs]
        whole = self._run(joint, constants, options)
        first = self._run(forward, constants, options)
        self.saved = dict(zip(self.given, first, strict=True))
        second = self._run(backward, {**constants, **self.saved}, options)
        worst = -math.inf
        for results in (whole, [*first[: traced.num_forward], *second]):
            for output, actual, wanted in zip(traced.outputs, results, expected, strict=True):
                t = t_of(actual, wanted)
                if t > LARGEST_T:
                    raise differs(self.sample, self._named(output), t)
                worst = max(worst, t)
        return worst

    def measured(self, backward: Sample) -> Sample:
        """Return the backward graph with measured statistics of the saved tensors."""
        inputs = list(backward.inputs)
        for place, name in enumerate(self.arguments["backward"]):
            tensor = self.saved.get(name)
            if tensor is not None and name not in self.traced.primals:
                inputs[place] = dataclasses.replace(
                    inputs[place],
                    statistics=measure(tensor),
                    data=elements_to_store(tensor, "input"),
                )
        return dataclasses.replace(backward, inputs=tuple(inputs))

    def _known(self, trial: Trial) -> dict[str, torch.Tensor]:
        traced = self.traced
        constants = {name: self.tensors[place].detach() for name, place in traced.primals.items()}
        for name, place in traced.tangents.items():
            if place not in trial.tangents:
                raise GradientError(
                    f"The backward graph of `{self.sample.id}` expects a gradient of output "
                    f"{place}, but eager autograd computes no such gradient."
                )
            constants[name] = trial.tangents[place]
        if len(trial.drawn) != len(traced.drawn):
            raise GradientError(
                f"`{self.sample.id}` draws random numbers {len(trial.drawn)} times, and its traced "
                f"gradients {len(traced.drawn)} times, so they cannot be compared."
            )
        for name, drawn in traced.drawn.items():
            dtype = self._values()[name].dtype
            constants[name] = trial.drawn[drawn.order].to(dtype)
        return constants

    def _values(self) -> dict[str, torch.Tensor]:
        return {
            node.name: node.meta["val"]
            for node in self.traced.module.graph.nodes
            if node.op == "placeholder"
        }

    def _expected(self, trial: Trial, output: Any) -> torch.Tensor:
        if output.kind == "output":
            return trial.outputs[output.index]
        if output.kind == "written":
            return trial.written[output.index]
        tensor = self.tensors[output.index]
        return trial.gradients.get(output.index, torch.zeros_like(tensor)).detach()

    def _run(
        self, sample: Sample, constants: Mapping[str, torch.Tensor], options: Mapping[str, Any]
    ) -> list[torch.Tensor]:
        """Run one of the samples on the tensors of the trial."""
        names = self.arguments[sample.kind]
        fixed = make_inputs(sample, 0) if len(names) < len(sample.inputs) else {}
        arguments = {
            canonical: constants[names[place]].clone() if place < len(names) else fixed[canonical]
            for place, canonical in enumerate(sample.input_names)
        }
        try:
            with torch.no_grad():
                return list(materialize(sample, **options)(**arguments))
        except RuntimeError as error:
            if isinstance(error, GraphNetError):
                raise
            if "view size is not compatible" in str(error):
                raise _StrideError(str(error)) from error
            raise GradientError(
                f"The {sample.kind} graph of `{self.sample.id}` does not run: "
                f"{str(error).splitlines()[0][:300]}"
            ) from error

    # Samples

    def _convert(self, kind: Kind, module: torch.fx.GraphModule, outputs: Sequence[Any]) -> Sample:
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        whole = self.sample
        provenance = dataclasses.replace(
            whole.provenance,
            parent_id=whole.id,
            parent_ops=(),
            capture="aot_autograd",
            framework_version=torch.__version__.partition("+")[0],
            metadata=self._metadata(outputs),
        )
        try:
            conversion = convert(
                module,
                [Binding("input", self._source_name(node.name)) for node in placeholders],
                Naming(f"{whole.id}/{kind}", whole.task, provenance),
                value_key="val",
                module_path=lambda _stack: "",
            ).sample
        except CaptureError as error:
            raise GradientError(str(error).partition(". Capture")[0].rstrip(".") + ".") from error
        self.arguments[kind] = tuple(node.name for node in placeholders)
        inputs = list(conversion.inputs)
        for place, node in enumerate(placeholders):
            inputs[place] = self._input(node.name, inputs[place])
        results = (
            conversion.outputs.items
            if isinstance(conversion.outputs, ListArg)
            else conversion.outputs
        )
        return dataclasses.replace(conversion, kind=kind, inputs=tuple(inputs), outputs=results)

    def _input(self, name: str, graph_input: Input) -> Input:
        traced, trial = self.traced, self.trial
        if name in traced.primals:
            original = self.sample.inputs[self.call.positions[traced.primals[name]]]
            shape = self.sample.shape_of(original.value)
            stride = original.value.stride and self.sample.shape_of(
                Value(None, original.value.stride)
            )
            return dataclasses.replace(original, value=Value(original.value.dtype, shape, stride))
        if name in traced.tangents:
            return dataclasses.replace(graph_input, statistics=TANGENT)
        if name in traced.drawn and trial is not None:
            order = traced.drawn[name].order
            if order < len(trial.drawn):
                numbers = trial.drawn[order].to(dtype_of(str(graph_input.value.dtype)))
                return dataclasses.replace(
                    graph_input,
                    statistics=measure(numbers),
                    data=elements_to_store(numbers, "input"),
                )
        return graph_input

    def _source_name(self, name: str) -> str:
        traced = self.traced
        if name in traced.tangents:
            return f"tangent_{traced.tangents[name]}"
        if name in traced.primals or name in traced.drawn:
            return name
        return f"saved_{name}"

    def _named(self, output: Output) -> Output:
        """Return an output indexed by the sample's inputs instead of its tensors."""
        if output.kind == "output":
            return output
        return dataclasses.replace(output, index=self.call.positions[output.index])

    def _metadata(self, outputs: Sequence[Output | str]) -> str:
        texts = [
            output if isinstance(output, str) else self._named(output).describe(self.sample)
            for output in outputs
        ]
        return note_outputs(self.sample.provenance.metadata, texts)
