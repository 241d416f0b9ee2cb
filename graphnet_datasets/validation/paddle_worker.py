"""The checks that run Paddle samples, each in its own process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from ..analysis.hashes import structure_hash
from ..errors import CaptureError, GraphNetError
from ..frameworks.choices import is_weight
from ..frameworks.paddle.extract import extract
from ..frameworks.paddle.materialize import materialize
from ..frameworks.paddle.plan import Plan
from ..frameworks.paddle.results import find_unknown
from ..frameworks.paddle.statistics import encode
from ..frameworks.paddle.tensors import make_inputs
from ..isolation import Reporter
from ..sample import Sample
from ..sample.arguments import ListArg
from . import jobs
from .jobs import Terms, difference, explain_all
from .parts import SEED, Runner, check_parts
from .reading import Failed, tell_unknown

prepare = jobs.prepare


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Run one job."""
    set_num_threads: Any = paddle.base.core.set_num_threads
    set_num_threads(1)
    jobs.work(
        {
            "statically_analysable": statically_analysable,
            "runnable": runnable,
            "decomposable": decomposable,
            "reextractable": reextractable,
        },
        payload,
        reporter,
        directory,
    )


def statically_analysable(sample: Sample, terms: Terms) -> str | None:  # noqa: ARG001
    """Check that all operators are known; see `reading.check_statically_analysable`."""
    return tell_unknown(sample, find_unknown(sample, allow_unchecked_operators=True))


def runnable(sample: Sample, terms: Terms) -> str | None:
    """Check that the sample runs and its outputs are finite, except for infinities it writes
    itself.
    """
    try:
        outputs = _runner(terms).run(sample)
    except GraphNetError:
        raise
    except Exception as error:
        raise Failed(_where_it_fails(sample) or _last_line(error)) from error
    return explain_all(map(_count_not_finite, _tensors(outputs)), sample)


def _where_it_fails(sample: Sample) -> str:
    """Describe the operator that fails. The original model fails in the same call."""

    def stop(position: int, result: Any) -> Any:
        if isinstance(result, Exception):
            target = sample.ops[position].target
            raise Failed(
                f"Op {position} (`{target}`) fails on a CPU, and so does the same call in the "
                "source text of the sample; it may run on a GPU: "
                f"{_last_line(result)}"
            )
        return result

    paddle.seed(SEED)
    try:
        with paddle.no_grad():
            Plan(sample).observe(list(make_inputs(sample, SEED).values()), stop)
    except Failed as found:
        return str(found)
    return ""


def _last_line(error: BaseException) -> str:
    """Return the message of a Paddle error without the preceding stack trace of its core."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = next((line for line in lines if "Error: " in line), lines[-1] if lines else "")
    return f"{type(error).__name__}: {message[:300]}"


def _count_not_finite(tensor: paddle.Tensor) -> tuple[int, int]:
    if not tensor.is_floating_point():
        return 0, 0
    wide = tensor.astype("float32") if tensor.dtype != paddle.float64 else tensor
    return int(wide.isnan().sum()), int(wide.isinf().sum())


def decomposable(sample: Sample, terms: Terms) -> str | None:
    """Check that disjoint parts, run in sequence, reproduce the outputs of the whole."""
    return check_parts(sample, _runner(terms))


def reextractable(sample: Sample, terms: Terms) -> str | None:
    """Check that capturing the materialized sample yields a graph of the same structure.

    Paddle programs represent some arguments differently from a sample: they round literals to 32
    bits and use operators of the core for `paddle.arange`. So a graph that this version of Paddle
    did not capture may return in another form. That form must produce the same bits and must itself
    be captured unchanged.
    """
    again = _capture(sample, list(make_inputs(sample, SEED).values()), terms)
    if structure_hash(again) == structure_hash(sample):
        return None
    differs = _difference(sample, again)
    provenance = sample.provenance
    if (provenance.capture, provenance.framework_version) == (
        again.provenance.capture,
        again.provenance.framework_version,
    ):
        raise Failed(f"A second capture has another structure: {differs}.")
    third = _capture(again, _inputs_of(again, sample), terms)
    if structure_hash(third) != structure_hash(again):
        raise Failed(
            f"A second capture has another structure ({differs}), and a capture of that differs "
            f"again ({difference(again, third)})."
        )
    runner = _runner(terms)
    expected = runner.run(sample)
    run, values = runner.materialize(again), _inputs_of(again, sample)
    runner.seed(SEED)
    if not runner.is_same(run(values), expected):
        raise Failed(f"A second capture has another structure ({differs}) and returns other bits.")
    return (
        f"A second capture has the form of paddle {again.provenance.framework_version} "
        f"({differs}). It returns the same bits, and capturing it changes nothing."
    )


def _difference(before: Sample, after: Sample) -> str:
    if structure_hash(_rounded(before)) == structure_hash(_rounded(after)):
        return f"the same {before.num_ops} operators with literals rounded to 32 bits"
    return difference(before, after)


def _rounded(sample: Sample) -> Sample:
    """Return the sample with its literals rounded like most literals of Paddle programs."""

    def rounded(arg: Any) -> Any:
        if type(arg) is float:
            with np.errstate(over="ignore"):
                return float(np.float32(arg))
        if isinstance(arg, tuple):
            return tuple(map(rounded, arg))
        return ListArg(tuple(map(rounded, arg.items))) if isinstance(arg, ListArg) else arg

    ops = [
        dataclasses.replace(op, args=rounded(op.args), kwargs=rounded(op.kwargs))
        for op in sample.ops
    ]
    return dataclasses.replace(sample, ops=tuple(ops))


def _capture(sample: Sample, inputs: Sequence[Any], terms: Terms) -> Sample:
    # Capture makes the first dimension of every argument symbolic, so weights must not be
    # arguments.
    weights = "parameters" if sample.is_dynamic else "inputs"
    layer = materialize(
        sample,
        weights=weights,
        memory_limit_bytes=terms.memory_limit_bytes,
        allow_unchecked_operators=terms.allow_unchecked_operators,
    )
    capturing: Any = extract(name="again", dynamic=sample.is_dynamic)(layer)
    inputs_by_name = dict(zip(sample.input_names, inputs, strict=True))
    paddle.seed(SEED)
    try:
        with paddle.no_grad():
            capturing(**{name: inputs_by_name[name] for name in layer.names})
    except CaptureError as error:
        raise Failed(f"It cannot be captured again: {error}") from error
    return capturing.samples[0]


def _inputs_of(again: Sample, sample: Sample) -> list[Any]:
    """Return the inputs of a sample in the order of its captured copy."""
    values = make_inputs(sample, SEED)
    data = iter(
        [
            value
            for value, item in zip(values.values(), sample.inputs, strict=True)
            if isinstance(value, paddle.Tensor) and not (sample.is_dynamic and is_weight(item))
        ]
    )
    return [values[item.source_name] if item.source_name else next(data) for item in again.inputs]


def _runner(terms: Terms) -> Runner:
    def build(sample: Sample) -> Callable[[Sequence[Any]], Any]:
        layer = materialize(
            sample,
            memory_limit_bytes=terms.memory_limit_bytes,
            allow_unchecked_operators=terms.allow_unchecked_operators,
        )

        def run(values: Sequence[Any]) -> Any:
            with paddle.no_grad():
                return layer(*values)

        return run

    return Runner(build, make_inputs, paddle.seed, paddle.Tensor, _is_same)


def _tensors(outputs: Any) -> Iterator[paddle.Tensor]:
    if isinstance(outputs, paddle.Tensor):
        yield outputs
    elif isinstance(outputs, tuple | list | dict):
        for output in outputs.values() if isinstance(outputs, dict) else outputs:
            yield from _tensors(output)


def _is_same(left: paddle.Tensor, right: paddle.Tensor) -> bool:
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and left._is_initialized() == right._is_initialized()
        and (not left._is_initialized() or encode(left) == encode(right))
    )
