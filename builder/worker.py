"""Captures one catalog entry per job, in a process of its own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # everything is built from configs

import torch
import torch._dynamo
import torch._inductor
import transformers  # noqa: F401

from graphnet_datasets.errors import CaptureError
from graphnet_datasets.frameworks.torch.extract import extract
from graphnet_datasets.isolation import Reporter, serve
from graphnet_datasets.sample import Provenance, Sample
from graphnet_datasets.table import write_table

from .catalog import Entry, parse_line
from .examples import make_examples
from .models import build_model, source_of

PHASES = ("build", "capture", "write")


def capture_entry(entry: Entry) -> Sample:
    """Return the one sample that the entry's model gives.

    Raises:
        CaptureError: the graph breaks, or cannot be captured.
    """
    return _capture(entry, build_model(entry))


def _capture(entry: Entry, model: torch.nn.Module) -> Sample:
    source, version = source_of(entry)
    provenance = Provenance(
        source=source,
        license="Apache-2.0",
        tags=entry.tags,
        model_name=entry.builder,
        library_version=version,
    )
    wrapped = extract(
        name=entry.name,
        task=entry.task,
        dynamic=entry.dynamic == ("all",),
        provenance=provenance,
    )(model)
    examples = make_examples(entry)
    for dimension in entry.dynamic:
        if dimension != "all":
            name, _, axis = dimension.partition(".")
            torch._dynamo.mark_dynamic(examples[name], int(axis))
    with torch.no_grad():
        wrapped(**examples)
    samples = wrapped.samples
    if len(samples) != 1:
        raise CaptureError(
            f"`{entry.name}` breaks into {len(samples)} graphs: "
            f"{samples[0].provenance.break_reason}"
        )
    return samples[0]


def run(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Capture the entry of `payload["line"]` and write its row to `payload["out"]`."""
    del directory
    torch.set_num_threads(1)
    entry = parse_line(payload["line"])
    model = build_model(entry)
    reporter.enter("capture")
    sample = _capture(entry, model)
    reporter.enter("write")
    write_table([sample], Path(payload["out"]))
    reporter.send({"num_ops": sample.num_ops, "num_params": sample.num_params})


if __name__ == "__main__":
    serve(run)
