"""The checks that run samples of paddle, each in a process of its own."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paddle

from ..frameworks.paddle.materialize import materialize
from ..frameworks.paddle.tensors import make_inputs
from ..isolation import Reporter
from ..sample import Sample
from . import jobs
from .jobs import Terms, explain
from .reading import Skipped


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Do one job."""
    jobs.work(
        {"runnable": runnable, "decomposable": decomposable, "reextractable": reextractable},
        payload,
        reporter,
        directory,
    )


def runnable(sample: Sample, terms: Terms) -> str | None:
    """Check that the sample runs and gives finite outputs."""
    layer = materialize(sample, memory_limit_bytes=terms.memory_limit_bytes)
    inputs = make_inputs(sample)
    paddle.seed(0)
    counts: collections.Counter[str] = collections.Counter()
    with paddle.no_grad():
        outputs = layer(**inputs)
    for tensor in _tensors(outputs):
        if tensor.is_floating_point():
            wide = tensor.astype("float32") if tensor.dtype != paddle.float64 else tensor
            num_nan, num_infinite = int(wide.isnan().sum()), int(wide.isinf().sum())
            counts.update({"NaN": num_nan} if num_nan else {})
            counts.update({"infinite": num_infinite} if num_infinite else {})
    return explain(counts, writes_infinities=False)


def decomposable(sample: Sample, terms: Terms) -> str | None:  # noqa: ARG001
    """Say that samples of paddle are not cut."""
    raise Skipped("Samples of paddle cannot be cut into parts by this version.")


def reextractable(sample: Sample, terms: Terms) -> str | None:  # noqa: ARG001
    """Say that samples of paddle are not captured again."""
    raise Skipped("Samples of paddle are not captured again by this version.")


def _tensors(outputs: Any) -> Iterator[paddle.Tensor]:
    if isinstance(outputs, paddle.Tensor):
        yield outputs
    elif isinstance(outputs, tuple | list):
        for each in outputs:
            yield from _tensors(each)
