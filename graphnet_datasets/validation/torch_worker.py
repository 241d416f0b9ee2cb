"""The checks that run torch samples, each in its own process."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from ..analysis.hashes import structure_hash
from ..errors import CaptureError
from ..frameworks.torch.capture.dynamo import CaptureSettings
from ..frameworks.torch.extract import capture_module
from ..frameworks.torch.materialize import materialize
from ..frameworks.torch.tensors import make_inputs
from ..frameworks.torch.walking.live_memory import tensors_in
from ..isolation import Reporter
from ..sample import Sample
from . import jobs
from .check_job import CAPTURES_VARIABLE
from .jobs import Terms, difference, explain_all
from .parts import SEED, Runner, check_parts
from .reading import Failed, Skipped, check


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Run one job."""
    torch.set_num_threads(1)
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


def prepare() -> None:
    """Import the modules that all jobs need.

    A server of capturing checks also captures a graph of one operator, which imports four hundred
    modules.
    """
    jobs.prepare()
    if os.environ.get(CAPTURES_VARIABLE):
        _capture(torch.nn.ReLU(), {"input": torch.ones(1)}, is_dynamic=False)
        torch._dynamo.reset()


def statically_analysable(sample: Sample, terms: Terms) -> str:  # noqa: ARG001
    """Run the check of `reading` in a process that has already imported torch."""
    result = check("statically_analysable", sample, {})
    if result.outcome == "failed":
        raise Failed(result.reason)
    if result.outcome == "skipped":
        raise Skipped(result.reason)
    return result.reason


def runnable(sample: Sample, terms: Terms) -> str | None:
    """Check that the sample runs and its outputs are finite, except for infinities it writes
    itself.
    """
    return explain_all(map(_count_not_finite, tensors_in(_runner(terms).run(sample))), sample)


def _count_not_finite(tensor: torch.Tensor) -> tuple[int, int]:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return 0, 0
    # float8 does not support comparisons.
    wide = tensor if tensor.is_complex() or tensor.element_size() > 1 else tensor.float()
    return int(wide.isnan().sum()), int(wide.isinf().sum())


def decomposable(sample: Sample, terms: Terms) -> str | None:
    """Check that disjoint parts, run in sequence, reproduce the outputs of the whole."""
    return check_parts(sample, _runner(terms))


def reextractable(sample: Sample, terms: Terms) -> str | None:
    """Check that capturing the materialized sample yields one graph of the same structure."""
    try:
        again = captured_again(sample, terms)
    except CaptureError as error:
        raise Failed(f"It cannot be captured again: {error}") from error
    if len(again) != 1:
        reasons = {graph.provenance.break_reason for graph in again} - {""}
        because = f": {'; '.join(sorted(reasons))}" if reasons else ""
        raise Failed(f"A second capture breaks into {len(again)} graphs{because}")
    before, after = structure_hash(sample), structure_hash(again[0])
    if before != after:
        raise Failed(f"A second capture has another structure: {difference(sample, again[0])}.")
    return None


def captured_again(sample: Sample, terms: Terms) -> list[Sample]:
    """Capture the materialized sample and return the graphs.

    Raises:
        CaptureError: The capture fails.
    """
    module = materialize(sample, **dataclasses.asdict(terms))
    inputs = make_inputs(sample, SEED)
    _fix_sizes(sample, inputs.values())
    return _capture(_Again(module), inputs, is_dynamic=sample.is_dynamic)


def _capture(module: torch.nn.Module, inputs: dict[str, Any], *, is_dynamic: bool) -> list[Sample]:
    settings = CaptureSettings("again", dynamic=is_dynamic, warm_up=False, is_structure_alone=True)
    torch.manual_seed(SEED)
    with torch.no_grad():
        _, samples = capture_module(settings, module, module.__call__, (), inputs)
    return samples


def _fix_sizes(sample: Sample, inputs: Iterable[Any]) -> None:
    """Mark the numeric sizes as static; Dynamo would make even sizes of weights symbolic."""
    if not sample.is_dynamic:
        return
    for graph_input, value in zip(sample.inputs, inputs, strict=True):
        if isinstance(value, torch.Tensor):
            for axis, size in enumerate(graph_input.value.shape or ()):
                if isinstance(size, int):
                    torch._dynamo.mark_static(value, axis)


class _Again(torch.nn.Module):
    """Calls a materialized sample from a source file, which Dynamo expects of a model."""

    def __init__(self, graph: torch.nn.Module) -> None:
        super().__init__()
        self.graph = graph

    def forward(self, **inputs: Any) -> Any:
        return self.graph(**inputs)


def _runner(terms: Terms) -> Runner:
    def build(sample: Sample) -> Callable[[Sequence[Any]], Any]:
        module = materialize(sample, **dataclasses.asdict(terms))

        def run(values: Sequence[Any]) -> Any:
            with torch.no_grad():
                return module(**dict(zip(sample.input_names, values, strict=True)))

        return run

    return Runner(build, make_inputs, torch.manual_seed, torch.Tensor, _is_same)


def _is_same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and torch.equal(_bytes_of(left), _bytes_of(right))
    )


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous().flatten().view(torch.uint8)
