"""The checks that run samples of torch, each in a process of its own."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ..analysis.hashes import structure_hash
from ..arguments import Named, Ref, iterate_refs
from ..errors import CaptureError
from ..frameworks.torch.extract import extract
from ..frameworks.torch.live_memory import tensors_in
from ..frameworks.torch.materialize import materialize
from ..frameworks.torch.tensors import make_inputs
from ..isolation import Reporter
from ..sample import Sample
from ..transforms import decompose
from . import jobs
from .jobs import Terms, explain
from .reading import Failed, Skipped

NUM_PARTS = 4
"""Parts that `decomposable` cuts a sample into; fewer where there are fewer places to cut."""

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
    for tensor in tensors_in(_run(sample, terms)):
        if tensor.is_floating_point() or tensor.is_complex():
            # float8 has no comparisons of its own.
            wide = tensor if tensor.is_complex() or tensor.element_size() > 1 else tensor.float()
            num_nan, num_infinite = int(wide.isnan().sum()), int(wide.isinf().sum())
            counts.update({"NaN": num_nan} if num_nan else {})
            counts.update({"infinite": num_infinite} if num_infinite else {})
    return explain(counts, _writes_infinities(sample))


def decomposable(sample: Sample, terms: Terms) -> str | None:
    """Check that disjoint parts, run one after the other, give what the whole gives."""
    if sample.num_ops < 2:
        raise Skipped(f"There is nothing to cut: the sample has {sample.num_ops} operators.")
    parts = decompose(sample, NUM_PARTS).parts
    if len(parts) < 2:
        raise Failed(
            "There is no place to cut: everywhere a tuple crosses or a region (autocast, vmap) is "
            "open."
        )
    returned = tuple(dict.fromkeys(iterate_refs(sample.outputs)))
    flat = dataclasses.replace(sample, outputs=tuple(map(Ref, returned)))
    expected = _run(flat, terms)
    values = dict(enumerate(make_inputs(sample, _SEED).values()))
    torch.manual_seed(_SEED)
    for part in parts:
        names = part.sample.input_names
        module = materialize(part.sample, **dataclasses.asdict(terms))
        arguments = {name: values[value] for name, value in zip(names, part.takes, strict=True)}
        with torch.no_grad():
            values.update(zip(part.gives, module(**arguments), strict=True))
    for place, (value, whole) in enumerate(zip(returned, expected, strict=True)):
        if not _is_same(values[value], whole):
            raise Failed(f"Cut into {len(parts)} parts it gives other bits in output {place}.")
    return f"Cut into {len(parts)} parts."


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
        raise Failed(f"Captured again it has another structure: {_difference(sample, again[0])}.")
    return None


class _Again(torch.nn.Module):
    """Calls a materialized sample from code that has a file, as dynamo expects of a model."""

    def __init__(self, graph: torch.nn.Module) -> None:
        super().__init__()
        self.graph = graph

    def forward(self, **inputs: Any) -> Any:
        return self.graph(**inputs)


def _run(sample: Sample, terms: Terms) -> Any:
    module = materialize(sample, **dataclasses.asdict(terms))
    inputs = make_inputs(sample, _SEED)
    torch.manual_seed(_SEED)
    with torch.no_grad():
        return module(**inputs)


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


def _writes_infinities(sample: Sample) -> bool:
    """Tell whether the graph itself brings infinities in: as a literal or in a stored tensor."""
    return any(_is_infinite(arg) for op in sample.ops for arg in _literals((op.args, op.kwargs)))


def _literals(arg: Any) -> Iterator[Any]:
    if isinstance(arg, tuple):
        for item in arg:
            yield from _literals(item)
    elif not isinstance(arg, Ref | Named):
        yield arg


def _is_infinite(arg: Any) -> bool:
    return isinstance(arg, float) and math.isinf(arg)


def _difference(before: Sample, after: Sample) -> str:
    """Say in a few words how two samples differ."""
    counts = [collections.Counter(op.target for op in each.ops) for each in (before, after)]
    lost, gained = counts[0] - counts[1], counts[1] - counts[0]
    if not lost and not gained:
        return f"the same {before.num_ops} operators with other arguments or edges"
    parts = []
    for word, counter in (("lost", lost), ("gained", gained)):
        listed = ", ".join(f"{count} `{name}`" for name, count in counter.most_common(4))
        if listed:
            parts.append(f"{word} {listed}")
    return "; ".join(parts)
