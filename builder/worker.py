"""Captures one catalog entry per job, in a separate process."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._inductor

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.errors import CaptureError
from graphnet_datasets.frameworks.torch.capture.distributions import initial_statistics
from graphnet_datasets.frameworks.torch.capture.dynamo import source_name
from graphnet_datasets.frameworks.torch.capture.export import extract_export
from graphnet_datasets.frameworks.torch.extract import extract
from graphnet_datasets.frameworks.torch.statistics import measure
from graphnet_datasets.inputs import misfits
from graphnet_datasets.isolation import Reporter
from graphnet_datasets.sample import Provenance, Sample
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.storage.table import write_table

from .audit import Way
from .branches import layers_kept, numbers_of_python, taken_for_finite
from .caches import make_cache
from .capturing import LIBRARY_VARIABLE
from .catalog import Entry, parse_line
from .examples import make_examples
from .gradients import check_gradients
from .known_elements import elements_known
from .libraries import LIBRARIES
from .mixed_dtypes import mixed_dtypes
from .models import MAX_WEIGHT_BYTES, build_model, source_of, weigh
from .provenance import check_hashes, model_source_hash
from .training import gradients_of


def capture_entry(entry: Entry) -> list[Sample]:
    """Return the graphs of the entry's model: one, or several linked graphs if it breaks.

    Raises:
        CaptureError: the model cannot be captured, or breaks into more than `MAX_PIECES`.
    """
    return gradients_of(entry, _capture(entry, build_model(entry)))


def _capture(
    entry: Entry, model: torch.nn.Module, *, is_bound: bool = True, way: Way = "extract"
) -> list[Sample]:
    """Capture one call; unless `is_bound`, dynamic dimensions that the model fixes are constants.

    `way` selects `extract`, `extract_export`, or `extract` with gradients enabled followed by
    `backward`, whose gradients are compared with those of the model. Quantised models are exported.
    """
    if LIBRARIES[entry.library].is_quantised:
        way = "export"
    source, version, license = source_of(entry)
    provenance = Provenance(
        source=source,
        license=license,
        tags=entry.tags,
        model_name=entry.builder,
        library_version=version,
    )
    options: dict[str, Any] = {"name": entry.name, "task": entry.task, "provenance": provenance}
    examples: dict[str, Any] = make_examples(entry)
    for spec in entry.inputs:
        if spec.kind == "cache":
            examples[spec.name] = make_cache(model, entry, spec)
    shapes = torch.export.ShapesCollection()
    mark = torch._dynamo.mark_dynamic if is_bound else torch._dynamo.maybe_mark_dynamic
    for dimension in entry.dynamic:
        if dimension != "all":
            name, _, axis = dimension.partition(".")
            if way == "export":
                shapes[examples[name]][int(axis)] = torch.export.Dim.AUTO
            else:
                mark(examples[name], int(axis))
    args = positional(examples)
    call = copy.deepcopy((args, examples)) if way == "backward" else None
    with torch.set_grad_enabled(way == "backward"), contextlib.ExitStack() as stack:
        if entry.mode == "train":
            stack.enter_context(layers_kept())
        if entry.library == "transformers":
            stack.enter_context(taken_for_finite())
            stack.enter_context(numbers_of_python())
        if any(spec.kind in KNOWN for spec in entry.inputs):
            stack.enter_context(elements_known(examples.values()))
        if way == "export":
            if shapes:
                options["dynamic_shapes"] = shapes.dynamic_shapes(model, tuple(args), examples)
            samples = [extract_export(model, args, examples, **options)]
        else:
            wrapped = extract(dynamic=entry.dynamic == ("all",), **options)(model)
            wrapped(*args, **examples)
            samples = wrapped.samples
        if call is not None:
            check_gradients(model, *call, samples)
    if len(samples) > MAX_PIECES:
        raise CaptureError(
            f"`{entry.name}` breaks into {len(samples)} graphs, more than {MAX_PIECES}: "
            f"{samples[0].provenance.break_reason}"
        )
    for sample in samples:
        for misfit in misfits(sample):  # the graph was not run, so they were not detected
            raise CaptureError(
                f"{misfit} Choose other inputs for `{entry.name}`, or a larger config."
            )
        for mixed in mixed_dtypes(sample):
            raise CaptureError(f"{mixed} `{entry.name}` does not run in {entry.dtype}.")
    return samples


def positional(examples: dict[str, Any]) -> list[Any]:
    """Remove the examples `_0`, `_1`, … and return them as positional arguments.

    >>> examples = {"_0": 1, "mask": 2}
    >>> positional(examples), examples
    ([1], {'mask': 2})
    """
    names = sorted(name for name in examples if name[0] == "_" and name[1:].isdigit())
    return [examples.pop(name) for name in names]


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Capture the entry of `payload["line"]` and write its rows to `payload["out"]`.

    With `is_audit` the model has weights, so that its samples are compared with it, and nothing is
    written.
    """
    del directory
    torch.set_num_threads(1)
    try:
        if payload.get("is_audit"):
            _audit(payload, reporter)
        elif payload.get("is_measuring"):
            _measure(payload, reporter)
        else:
            _run(payload, reporter)
    finally:
        reporter.send({"cpu_s": round(time.process_time(), 3)})


def _run(payload: dict[str, Any], reporter: Reporter) -> None:
    entry = parse_line(payload["line"])
    model = build_model(entry)
    reporter.enter("capture")
    samples, model = _with_retries(entry, model)
    samples = gradients_of(entry, samples)
    reporter.enter("write")
    columns = {"model_source_hash": model_source_hash(model)}
    rows = [sample_to_row(sample, {**derived_columns(sample), **columns}) for sample in samples]
    write_table(rows, Path(payload["out"]))
    reporter.send(
        {"num_graphs": len(samples), "num_ops": sum(sample.num_ops for sample in samples)}
    )


def _audit(payload: dict[str, Any], reporter: Reporter) -> None:
    entry = parse_line(payload["line"])
    model = build_model(entry, with_weights=True)
    reporter.enter("capture")
    samples = _capture_loosely(entry, model, payload["way"])
    if payload.get("is_twice"):
        del model
        torch._dynamo.reset()
        again = _capture_loosely(entry, build_model(entry, with_weights=True), payload["way"])
        check_hashes(samples, again)
    reporter.send({"num_graphs": len(samples)})


def _capture_loosely(entry: Entry, model: torch.nn.Module, way: Way) -> list[Sample]:
    """Capture one call; dynamic dimensions that the model fixes are constants."""
    try:
        return _capture(entry, model, way=way)
    except Exception as error:
        if not (is_specialised(error) and entry.dynamic):
            raise
        torch._dynamo.reset()
        return _capture(entry, model, is_bound=False, way=way)


def _measure(payload: dict[str, Any], reporter: Reporter) -> None:
    """Write the measured statistics of initialised weights, by name, as JSON."""
    model = build_model(parse_line(payload["line"]), is_measured=True)
    reporter.enter("write")
    lines = {}
    for path, parameter in model.named_parameters():
        drawn = initial_statistics(parameter) if parameter.is_meta else measure(parameter)
        if drawn is not None and drawn.is_measured and drawn.std:
            figures = (drawn.mean, drawn.std, drawn.min, drawn.max)
            lines[source_name(path, "parameter")] = figures
    Path(payload["out"]).write_text(json.dumps(lines, sort_keys=True))


def _with_retries(entry: Entry, model: torch.nn.Module) -> tuple[list[Sample], torch.nn.Module]:
    """Capture a model; if the capture itself is the obstacle, try another way."""
    is_bound = True
    while True:
        try:
            return _capture(entry, model, is_bound=is_bound), model
        except Exception as error:
            # Fake weights produce fake results, on which a model cannot branch; try real weights.
            if (
                is_data_dependent(error)
                and any(parameter.is_meta for parameter in model.parameters())
                and weigh(model) <= MAX_WEIGHT_BYTES
            ):
                make = functools.partial(build_model, entry, with_weights=True)
            elif is_specialised(error) and is_bound and entry.dynamic:
                is_bound, make = False, functools.partial(build_model, entry)
            else:
                raise
        torch._dynamo.reset()
        model = make()


def is_data_dependent(error: BaseException) -> bool:
    """Return whether a capture failed because of data-dependent control flow.

    >>> is_data_dependent(ValueError("no"))
    False
    """
    return _is_of(error, DATA_DEPENDENT)


def is_specialised(error: BaseException) -> bool:
    """Return whether a capture failed because the model fixes a size that should be a symbol.

    >>> is_specialised(ValueError("ConstraintViolationError"))
    True
    """
    return _is_of(error, SPECIALISED)


def _is_of(error: BaseException, names: tuple[str, ...]) -> bool:
    """Return whether an error or one of its causes has one of several names or words."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        if type(link).__name__ in names or any(name in str(link) for name in names):
            return True
        seen.append(link)
        link = link.__cause__ or link.__context__
    return False


DATA_DEPENDENT = (
    "GuardOnDataDependentSymNode", "DataDependentOutputException",
    "Could not guard on data-dependent", "Could not extract specialized integer",
)  # fmt: skip
"""Names of torch's exceptions, and words of their messages, about data-dependent control flow."""

SPECIALISED = ("ConstraintViolationError", "Constraints violated", "is marked as dynamic, but")
"""The same about dimensions that are marked as symbols but constant in the model."""

KNOWN = ("prompt", "grid")
"""Kinds of inputs of models that compute sizes from elements."""

MAX_PIECES = 64
"""Maximum number of graphs of a model. More graphs indicate a loop in Python."""


WARM_UP = (
    "torch/warm-up | other | torch | mlp | sizes=[4,8,2] | input=normal(2,4) | float32 | eval "
    "| input.0 |",
    "torch/warm-up | cv | torch | convmixer | width=8 depth=1 kernel=3 patch=4 num_classes=2 "
    "| input=normal(1,3,16,16) | float32 | eval | |",
)
WARM_UP_TRANSFORMERS = (
    "transformers/warm-up | nlp | transformers | LlamaForCausalLM | stack_depth=1 "
    "| input_ids=ids(2,8; 9) attention_mask=full(2,8; 1) | float32 | eval "
    "| input_ids.1 attention_mask.1 |",
)
"""Entries that are captured and discarded before the first job, so that jobs share the lazy imports
and lookups of dynamo and the operator table, half of a job's time."""


def prepare() -> None:
    """Import the library of the jobs' models, and capture an example."""
    library = os.environ.get(LIBRARY_VARIABLE, "torch")
    LIBRARIES[library].preload()
    torch.set_num_threads(1)  # a pool of threads would not survive a fork
    for line in (*WARM_UP, *(WARM_UP_TRANSFORMERS if library == "transformers" else ())):
        with tempfile.TemporaryDirectory() as directory:
            write_table(capture_entry(parse_line(line)), Path(directory) / "row.parquet")
