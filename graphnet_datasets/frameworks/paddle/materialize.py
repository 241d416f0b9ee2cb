"""Materialization of a sample as a `paddle.nn.Layer`, without executing code from the sample."""

from __future__ import annotations

import inspect
from typing import Any

import paddle
from paddle.base.framework import EagerParamBase

from ...errors import MaterializeError
from ...inputs import MODES, Mode
from ...sample import Sample
from ..choices import check_choice, is_weight
from ..deadline import Deadline, drawing_until
from ..input_limits import check_inputs
from .plan import Plan
from .shapes import check_memory
from .tensors import Weights, make_input, place_of
from .unchecked import check_operators


def materialize(
    sample: Sample,
    *,
    device: str = "cpu",
    weights: Weights = "inputs",
    seed: int = 0,
    mode: Mode = "replay",
    memory_limit_bytes: int | None = None,
    time_limit_s: float | None = None,
    trust_remote_code: bool = False,  # noqa: ARG001 - custom operators are rejected
    allow_unchecked_operators: bool = False,
    is_known_to_fit: bool = False,
) -> PaddleGraph:
    """Return a layer that runs the sample on `device`; see `graphnet_datasets.materialize`.

    The layer works with `paddle.jit.to_static`. Its `forward` takes the inputs by their canonical
    names.

    Raises:
        UnknownOperatorError: an operator is not in the table.
        UncheckedOperatorError: an operator is unchecked and `allow_unchecked_operators` is false.
        TimeLimitError: planning the calls, inferring the shapes, or generating the weights takes
            longer than `time_limit_s` (default: two minutes).
        MemoryLimitError: the sample would need more memory than `memory_limit_bytes` (default: the
            memory of this machine).
        MaterializeError: the sample cannot be run.
    """
    check_choice("weights", weights, ("inputs", "parameters"))
    check_choice("mode", mode, MODES)
    if sample.framework != "paddle":
        raise MaterializeError(f"`{sample.id}` is a sample of {sample.framework}, not of paddle.")
    place_of(device)
    check_operators(sample, allow_unchecked_operators=allow_unchecked_operators)
    plan = Plan(
        sample,
        device,
        is_guarded=not allow_unchecked_operators,
        memory_limit_bytes=memory_limit_bytes,
        deadline=Deadline(time_limit_s),
    )
    if not (is_known_to_fit and allow_unchecked_operators):
        check_memory(
            sample,
            memory_limit_bytes,
            time_limit_s,
            allow_unchecked_operators=allow_unchecked_operators,
        )
    check_inputs(sample, None, memory_limit_bytes, are_laid_out=False)
    layer = _layer_class(sample, weights)(plan, weights)
    if weights == "parameters":
        with drawing_until(Deadline(time_limit_s), f"Making the weights of `{sample.id}`"):
            layer.make_weights(seed, mode)
    return layer


class PaddleGraph(paddle.nn.Layer):
    """A layer that runs one sample. With `weights="parameters"` it owns the parameters and
    buffers."""

    def __init__(self, plan: Plan, weights: Weights) -> None:
        super().__init__()
        self.plan = plan
        self.weights: Weights = weights
        sample = plan.sample
        self.names = tuple(
            name
            for name, sample_input in zip(sample.input_names, sample.inputs, strict=True)
            if weights == "inputs" or not is_weight(sample_input)
        )
        self.eval()

    def make_weights(self, seed: int, mode: Mode) -> None:
        """Generate the weights and store them as parameters and buffers."""
        sample = self.plan.sample
        for index, (name, sample_input) in enumerate(
            zip(sample.input_names, sample.inputs, strict=True)
        ):
            if is_weight(sample_input):
                tensor = make_input(sample, index, seed, mode, self.plan.device)
                self._hold(name, tensor, is_parameter=sample_input.role == "parameter")

    def copy(self) -> PaddleGraph:
        """Return another layer with the same weights, which a tracer may modify."""
        other = _layer_class(self.plan.sample, self.weights)(self.plan, self.weights)
        for name, parameter in self._parameters.items():
            other.add_parameter(name, parameter)
        for name, buffer in self._buffers.items():
            other.register_buffer(name, buffer)
        return other

    def _hold(self, name: str, tensor: Any, *, is_parameter: bool) -> None:
        if is_parameter:
            parameter = EagerParamBase.from_tensor(tensor)
            # Samples are timed as in deployment. Callers that need gradients can enable them.
            parameter.stop_gradient = True
            self.add_parameter(name, parameter)
        else:
            self.register_buffer(name, tensor)


@paddle.jit.not_to_static
def _run(layer: PaddleGraph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the plan. `to_static` traces through this function without transforming its code."""
    names = layer.names
    if args:
        kwargs = {**dict(zip(names, args, strict=False)), **kwargs}
    if len(kwargs) != len(names) or len(args) > len(names):
        raise TypeError(
            f"The graph takes {len(names)} inputs, got {len(kwargs)}. Their names are "
            f"{', '.join(names[:8])}{', …' if len(names) > 8 else ''}."
        )
    if len(names) == layer.plan.num_inputs:
        return layer.plan.run([kwargs[name] for name in names])
    values: dict[str, Any] = {**layer._parameters, **layer._buffers, **kwargs}
    return layer.plan.run([values[name] for name in layer.plan.sample.input_names])


def _layer_class(sample: Sample, weights: Weights) -> type[PaddleGraph]:
    """Return a class whose `forward` has an explicit signature, which `to_static` requires."""

    class Graph(PaddleGraph):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return _run(self, args, kwargs)

    names = [
        name
        for name, sample_input in zip(sample.input_names, sample.inputs, strict=True)
        if weights == "inputs" or not is_weight(sample_input)
    ]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    Graph.forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in ("self", *names)]
    )
    Graph.__name__ = Graph.__qualname__ = "PaddleGraph"
    return Graph
