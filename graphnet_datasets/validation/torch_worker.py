"""The checks that run samples of torch, each in a process of its own."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from ..analysis.hashes import structure_hash
from ..errors import CaptureError
from ..frameworks.torch.extract import extract
from ..frameworks.torch.live_memory import tensors_in
from ..frameworks.torch.materialize import materialize
from ..frameworks.torch.tensors import make_inputs
from ..isolation import Reporter
from ..sample import Sample
from . import jobs
from .jobs import Terms, difference, explain, writes_infinities
from .parts import Runner, check_parts
from .reading import Failed

_SEED = 0


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Do one job."""
    torch.set_num_threads(1)
    jobs.work(
        {"runnable": runnable, "decomposable": decomposable, "reextractable": reextractable},
        payload,
        reporter,
        directory,
    )


def runnable(sample: Sample, terms: Terms) -> str | None:
    """Check that the sample runs and gives finite outputs, or infinities that it writes itself."""
    counts: collections.Counter[str] = collections.Counter()
    for tensor in tensors_in(_runner(terms).run(sample)):
        if tensor.is_floating_point() or tensor.is_complex():
            # float8 has no comparisons of its own.
            wide = tensor if tensor.is_complex() or tensor.element_size() > 1 else tensor.float()
            num_nan, num_infinite = int(wide.isnan().sum()), int(wide.isinf().sum())
            counts.update({"NaN": num_nan} if num_nan else {})
            counts.update({"infinite": num_infinite} if num_infinite else {})
    return explain(counts, writes_infinities(sample))


def decomposable(sample: Sample, terms: Terms) -> str | None:
    """Check that disjoint parts, run one after the other, give what the whole gives."""
    return check_parts(sample, _runner(terms))


def reextractable(sample: Sample, terms: Terms) -> str | None:
    """Check that the materialized sample is captured as one graph of the same structure."""
    module = materialize(sample, **dataclasses.asdict(terms))
    inputs = make_inputs(sample, _SEED)
    capturing: Any = extract(name="again", warm_up=False, dynamic=sample.is_dynamic)(_Again(module))
    torch.manual_seed(_SEED)
    try:
        with torch.no_grad():
            capturing(**inputs)
    except CaptureError as error:
        raise Failed(f"It cannot be captured again: {error}") from error
    again = capturing.samples
    if len(again) != 1:
        reasons = {each.provenance.break_reason for each in again} - {""}
        because = f": {'; '.join(sorted(reasons))}" if reasons else ""
        raise Failed(f"Captured again it breaks into {len(again)} graphs{because}")
    before, after = structure_hash(sample), structure_hash(again[0])
    if before != after:
        raise Failed(f"Captured again it has another structure: {difference(sample, again[0])}.")
    return None


class _Again(torch.nn.Module):
    """Calls a materialized sample from code that has a file, as dynamo expects of a model."""

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

    return Runner(
        materialize=build,
        make_inputs=lambda sample: list(make_inputs(sample, _SEED).values()),
        seed=lambda: torch.manual_seed(_SEED),
        is_same=_is_same,
    )


def _is_same(left: Any, right: Any) -> bool:
    """Compare bit by bit, so that NaN equals itself."""
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return (
            left.dtype == right.dtype
            and left.shape == right.shape
            and torch.equal(_bytes_of(left), _bytes_of(right))
        )
    if isinstance(left, tuple | list) and type(left) is type(right):
        return len(left) == len(right) and all(map(_is_same, left, right))
    return type(left) is type(right) and repr(left) == repr(right)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous().flatten().view(torch.uint8)
