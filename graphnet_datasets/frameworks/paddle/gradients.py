"""Gradient graphs of a Paddle sample, from Paddle's static autograd.

The gradients are appended to the sample's program, which is then read back like a capture. Gradient
kernels of Paddle's core (`paddle._C_ops.matmul_grad`, …) are unchecked operators: they run where
the caller allows them, or in separate processes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np
import paddle
import paddle.version

from ...errors import CaptureError, GradientError, GraphNetError
from ...sample import Input, Op, Sample, Value
from ...sample.arguments import Ref, iterate_refs, map_refs
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
    least_t,
    no_gradients,
    note_outputs,
)
from .gradient_program import GradientReader
from .materialize import materialize
from .operators import GETITEM, draws_random_numbers
from .statistics import elements_to_store, measure
from .tensors import make_inputs


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
        GradientError: the sample has no gradients or draws random numbers, or the graphs disagree
            with eager.
        UnknownOperatorError, UncheckedOperatorError, MemoryLimitError, MaterializeError: as
            `materialize`; gradient operators are unchecked.
    """
    if partition != "default":
        raise GradientError(
            "Paddle graphs can only be partitioned as paddle's autograd does. Omit `partition`.",
            reason="graphs of paddle have one partition",
        )
    for position, op in enumerate(sample.ops):
        if draws_random_numbers(op):
            raise GradientError(
                f"Operator {position} (`{op.target}`) of `{sample.id}` draws random numbers and "
                "uses them in the same call, so its gradient cannot be checked. Disable it "
                "with `eval()`.",
                operator=op.target,
                reason="an operator draws random numbers",
            )
    wanted = choose_inputs(sample, of)
    joint, outputs = _trace(sample, wanted, allow_unchecked_operators)
    num_forward = sum(output.kind != "gradient" for output in outputs)
    forward, backward = _cut(joint, sample, outputs, num_forward)
    if not check:
        return Gradients(joint, forward, backward)
    with _located(sample):
        largest, saved = _check(
            sample, joint, forward, backward, outputs, seed, allow_unchecked_operators
        )
    inputs = [
        dataclasses.replace(backward_input, **saved[backward_input.source_name])
        if backward_input.source_name in saved
        else backward_input
        for backward_input in backward.inputs
    ]
    backward = dataclasses.replace(backward, inputs=tuple(inputs))
    return Gradients(joint, forward, backward, largest)


@contextlib.contextmanager
def _located(sample: Sample) -> Iterator[None]:
    """Convert Paddle's exceptions, and capture errors, to GradientError."""
    try:
        yield
    except CaptureError as error:
        raise GradientError(str(error)) from error
    except GraphNetError:
        raise
    except Exception as error:  # Paddle raises arbitrary exception types here
        reason = str(error).strip().rpartition("\n")[2].strip()
        raise GradientError(
            f"`{sample.id}` cannot be differentiated: {type(error).__name__}: {reason[:300]}"
        ) from error


@contextlib.contextmanager
def _static() -> Iterator[None]:
    was_dynamic = paddle.in_dynamic_mode()
    paddle.enable_static()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if was_dynamic:
            paddle.disable_static()


def _trace(
    sample: Sample, wanted: frozenset[int], allow_unchecked_operators: bool
) -> tuple[Sample, tuple[Output, ...]]:
    """Return the joint sample and the descriptions of its outputs."""
    layer = materialize(sample, allow_unchecked_operators=allow_unchecked_operators)
    numbers = make_inputs(sample)
    declare: Any = paddle.static.data
    program, begin = paddle.static.Program(), paddle.static.Program()
    with _located(sample), _static(), paddle.static.program_guard(program, begin):
        arguments: dict[str, Any] = {}
        for position, (name, value) in enumerate(numbers.items()):
            if isinstance(value, paddle.Tensor):
                dtype = str(value.dtype).rpartition(".")[2]
                arguments[name] = declare(name, list(value.shape), dtype)
                arguments[name].stop_gradient = position not in wanted
            else:
                arguments[name] = value
        results = _tensors(layer(**arguments))
        chosen = [place for place, result in enumerate(results) if not result.stop_gradient]
        if not chosen:
            raise no_gradients(sample)
        tangents = [
            declare(
                f"tangent_{place}",
                list(results[place].shape),
                str(results[place].dtype).rpartition(".")[2].lower(),
            )
            for place in chosen
        ]
        sources = [arguments[name] for name in numbers]
        order = sorted(wanted)
        gradients = paddle.static.gradients(
            [results[place] for place in chosen], [sources[at] for at in order], tangents
        )
        tensors = [source for source in sources if not isinstance(source, bool | int | float)]
        input_gradients = [
            (at, gradient)
            for at, gradient in zip(order, gradients, strict=True)
            if gradient is not None
        ]
        if not input_gradients:
            raise no_gradients(sample)
        reader = GradientReader(
            sample.id,
            [*tensors, *tangents],
            [*results, *(gradient for _, gradient in input_gradients)],
        )
        reader.read(program.global_block())
        refs = [
            reader.value_of(result)
            for result in (*results, *(result for _, result in input_gradients))
        ]
    outputs = (
        *(Output("output", place) for place in range(len(results))),
        *(Output("gradient", at) for at, _ in input_gradients),
    )
    joint_inputs = [
        _at_capture(sample, sample_input)
        for sample_input, value in zip(sample.inputs, numbers.values(), strict=True)
        if isinstance(value, paddle.Tensor)
    ]
    joint_inputs += [
        Input(
            "input",
            Value(_dtype(tangent), tuple(tangent.shape)),
            f"tangent_{place}",
            "cpu",
            TANGENT,
        )
        for place, tangent in zip(chosen, tangents, strict=True)
    ]
    joint = _sample(
        sample, "joint", joint_inputs, reader.ops, refs, [o.describe(sample) for o in outputs]
    )
    return joint, outputs


def _tensors(results: Any) -> list[Any]:
    if isinstance(results, dict):
        return [tensor for item in results.values() for tensor in _tensors(item)]
    if isinstance(results, list | tuple):
        return [tensor for item in results for tensor in _tensors(item)]
    return [results] if hasattr(results, "stop_gradient") else []


def _dtype(value: Any) -> str:
    return str(value.dtype).rpartition(".")[2].lower()


def _at_capture(sample: Sample, graph_input: Input) -> Input:
    return dataclasses.replace(
        graph_input, value=Value(graph_input.value.dtype, sample.shape_of(graph_input.value))
    )


def _sample(
    whole: Sample,
    kind: Kind,
    inputs: Sequence[Input],
    ops: Sequence[Op],
    outputs: Sequence[Any],
    texts: Sequence[str],
) -> Sample:
    provenance = dataclasses.replace(
        whole.provenance,
        parent_id=whole.id,
        parent_ops=(),
        capture="static_gradients",
        framework_version=paddle.version.full_version,
        metadata=note_outputs(whole.provenance.metadata, texts),
    )
    return Sample(
        id=f"{whole.id}/{kind}", framework="paddle", task=whole.task, inputs=tuple(inputs),
        ops=tuple(ops), outputs=tuple(outputs), kind=kind, provenance=provenance,
    )  # fmt: skip


def _cut(
    joint: Sample, whole: Sample, outputs: Sequence[Output], num_forward: int
) -> tuple[Sample, Sample]:
    """Split the joint graph into a forward part and a backward part.

    Besides the original outputs, the forward part returns the values that the backward part needs.
    """
    num_inputs = len(joint.inputs)
    refs = [ref.index for ref in joint.outputs]  # type: ignore[union-attr]
    is_forward = [False] * joint.num_ops
    pending = [ref for ref in refs[:num_forward] if ref >= num_inputs]
    while pending:
        position = pending.pop() - num_inputs
        if not is_forward[position]:
            is_forward[position] = True
            op = joint.ops[position]
            pending += [ref for ref in iterate_refs((op.args, op.kwargs)) if ref >= num_inputs]
    # Keep tuple unpacking in the same part as the operator that returns the tuple.
    for position, op in enumerate(joint.ops):
        if op.target == GETITEM:
            maker = next(iterate_refs(op.args)) - num_inputs
            is_forward[position] |= maker >= 0 and is_forward[maker]
    crossing: dict[int, None] = {}
    for position, op in enumerate(joint.ops):
        if not is_forward[position]:
            for ref in iterate_refs((op.args, op.kwargs)):
                if ref >= num_inputs and is_forward[ref - num_inputs]:
                    crossing[ref] = None
    saved = list(crossing)
    saved_names = [f"saved_{ref - num_inputs}" for ref in saved]
    texts = [output.describe(whole) for output in outputs]
    forward = _part(
        joint, whole, "forward", is_forward, True, {},
        [*refs[:num_forward], *saved], [*texts[:num_forward], *(f"saved {n}" for n in saved_names)],
    )  # fmt: skip
    inputs = dict(zip(saved, saved_names, strict=True))
    backward = _part(
        joint, whole, "backward", is_forward, False, inputs, refs[num_forward:],
        texts[num_forward:],
    )  # fmt: skip
    return forward, backward


def _part(
    joint: Sample,
    whole: Sample,
    kind: Kind,
    is_forward: Sequence[bool],
    side: bool,
    saved: Mapping[int, str],
    gives: Sequence[int],
    texts: Sequence[str],
) -> Sample:
    num_inputs = len(joint.inputs)
    positions = [at for at in range(joint.num_ops) if is_forward[at] is side]
    used = {
        ref
        for at in positions
        for ref in iterate_refs((joint.ops[at].args, joint.ops[at].kwargs))
        if ref < num_inputs
    } | {ref for ref in gives if ref < num_inputs}
    if side:
        used |= {
            at
            for at, graph_input in enumerate(joint.inputs)
            if graph_input.statistics is not TANGENT
        }
    input_refs = [*sorted(used), *saved]
    order = [*input_refs, *(num_inputs + at for at in positions)]
    places = {ref: place for place, ref in enumerate(order)}

    def renumber(ref: int) -> Ref:
        return Ref(places[ref])

    inputs = []
    for ref in input_refs:
        if ref < num_inputs:
            inputs.append(joint.inputs[ref])
            continue
        (value,) = joint.ops[ref - num_inputs].results or (Value(),)
        if value.dtype is None or value.shape is None:
            raise GradientError(
                f"The backward graph of `{whole.id}` needs a value of the forward graph that is "
                "not a tensor of known size.",
                reason="the backward graph needs a tensor of unknown size",
            )
        inputs.append(Input("input", value, saved[ref]))
    ops = [
        dataclasses.replace(
            joint.ops[at],
            args=map_refs(joint.ops[at].args, renumber),
            kwargs=map_refs(joint.ops[at].kwargs, renumber),
        )
        for at in positions
    ]
    return _sample(whole, kind, inputs, ops, [renumber(ref) for ref in gives], texts)


def _check(
    sample: Sample,
    joint: Sample,
    forward: Sample,
    backward: Sample,
    outputs: Sequence[Output],
    seed: int,
    allow_unchecked_operators: bool,
) -> tuple[float, dict[str, dict[str, Any]]]:
    """Run all graphs and compare them with eager.

    Returns the largest tolerance `t` needed, and the statistics and data of the saved tensors.
    """
    options: dict[str, Any] = {"allow_unchecked_operators": allow_unchecked_operators}
    numbers: dict[str, Any] = make_inputs(sample, seed)
    wanted = {output.index for output in outputs if output.kind == "gradient"}
    names = list(numbers)
    for at, value in enumerate(numbers.values()):
        if isinstance(value, paddle.Tensor):
            value.stop_gradient = at not in wanted
    results = _tensors(materialize(sample, **options)(**numbers))
    generator = np.random.default_rng(seed)
    tensor_inputs = [value for value in numbers.values() if isinstance(value, paddle.Tensor)]
    tangents = {
        joint_input.source_name: paddle.cast(
            paddle.to_tensor(
                generator.standard_normal(joint.shape_of(joint_input.value) or ()).astype(
                    np.float32
                )
            ),
            cast(Any, joint_input.value.dtype),
        )
        for joint_input in joint.inputs[len(tensor_inputs) :]
    }
    chosen = [int(name.rpartition("_")[2]) for name in tangents]
    order = sorted(wanted)
    gradients = paddle.grad(
        [results[place] for place in chosen],
        [numbers[names[at]] for at in order],
        list(tangents.values()),
        allow_unused=True,
    )
    expected = [*results, *gradients]
    with paddle.no_grad():
        whole = materialize(joint, **options)(*tensor_inputs, *tangents.values())
        first = materialize(forward, **options)(*tensor_inputs[: len(forward.inputs)])
        joint_values = dict(
            zip(map(id, joint.inputs), [*tensor_inputs, *tangents.values()], strict=True)
        )
        num_own = len(results)
        saved_names = [
            backward_input.source_name
            for backward_input in backward.inputs
            if id(backward_input) not in joint_values
        ]
        saved = dict(zip(saved_names, first[num_own:], strict=True))
        arguments = [
            joint_values[id(backward_input)]
            if id(backward_input) in joint_values
            else saved[backward_input.source_name]
            for backward_input in backward.inputs
        ]
        second = materialize(backward, **options)(*arguments)
    worst = -math.inf
    for actual_outputs in (whole, [*first[:num_own], *second]):
        for output, actual, wanted_tensor in zip(outputs, actual_outputs, expected, strict=True):
            t = _t_of(actual, wanted_tensor)
            if t > LARGEST_T:
                raise differs(sample, output, t)
            worst = max(worst, t)
    return worst, {
        name: {"statistics": measure(tensor), "data": elements_to_store(tensor, "input")}
        for name, tensor in saved.items()
    }


def _t_of(actual: Any, expected: Any) -> float:
    if expected is None:
        expected = paddle.zeros_like(actual)
    dtype = _dtype(expected)
    if tuple(actual.shape) != tuple(expected.shape) or _dtype(actual) != dtype:
        return math.inf
    if actual.numpy().tobytes() == expected.numpy().tobytes():
        return -math.inf
    kind = "complex128" if dtype.startswith("complex") else "float64"
    left, right = (tensor.astype(kind).numpy() for tensor in (actual, expected))
    if dtype in ("bool",) or "int" in dtype or not (np.isfinite(left) & np.isfinite(right)).all():
        return math.inf
    difference, size = np.abs(left - right), np.abs(right)
    return least_t(dtype, lambda atol, rtol: bool((difference <= atol + rtol * size).all()))
