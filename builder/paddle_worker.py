"""Captures one catalog entry of paddle per job, in a separate process; torch is not imported."""

from __future__ import annotations

import functools
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("GLOG_minloglevel", "2")  # paddle's executor logs every program

with warnings.catch_warnings():
    # Paddle warns if ccache is not installed; nothing here builds extensions.
    warnings.filterwarnings("ignore", "No ccache found", UserWarning)
    import paddle
    import paddle.version

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.frameworks.paddle.extract import extract
from graphnet_datasets.isolation import Reporter
from graphnet_datasets.sample import Provenance, Sample
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.storage.table import write_table

from .architectures_paddle import ARCHITECTURES
from .architectures_paddle.functions import WRAPPERS
from .architectures_paddle.zoo import VISION
from .catalog import LIBRARY_VARIABLE, CatalogError, Entry, parse_line
from .examples import make_arrays
from .paddle_packages import CALL, MEMBER, PACKAGES, PADDLE, member, preload, resolve
from .paddleclas import DISTRIBUTION, backbone
from .provenance import check_hashes, model_source_hash

ZOO_SOURCE = "PaddlePaddle/Paddle"
CLAS_SOURCE = "PaddlePaddle/PaddleClas"
BUILDER_SOURCE = "graphnet-datasets/builder"


def build_layer(entry: Entry) -> paddle.nn.Layer:
    """Return the entry's model in its mode, with reproducible weights.

    Raises:
        CatalogError: the builder is unknown or rejects the overrides, or captures of paddle do not
            support the entry.
    """
    architecture = _architecture(entry)
    batches = {f"{spec.name}.0" for spec in entry.inputs}
    if entry.dtype != "float32" or (entry.dynamic and set(entry.dynamic) != batches):
        raise CatalogError(
            f"`{entry.name}`: models of paddle are captured in float32, with no dynamic dimension "
            f"or with the first one of every input ({' '.join(sorted(batches))})."
        )
    paddle.seed(0)
    try:
        layer = architecture(**resolve(entry.overrides, functools.partial(_callable, entry)))
    except TypeError as error:
        raise CatalogError(f"`{entry.name}` cannot be built: {error}") from error
    if entry.mode == "eval":
        layer.eval()
    return layer


def _callable(entry: Entry, path: str) -> Callable[..., Any]:
    """Return a function or class that the entry names.

    This is a wrapper, a member of paddle for a name that starts with `paddle.`, or else a member of
    the entry's package.
    """
    if path in WRAPPERS:
        return WRAPPERS[path]
    package, name = PACKAGES.get(entry.library, PADDLE), path
    if path.startswith("paddle."):
        package, name = PADDLE, path.removeprefix("paddle.")
    try:
        return member(package, name)
    except KeyError:
        raise CatalogError(
            f"`{entry.name}` names `{path}`, which `{entry.library}` does not have."
        ) from None


def _architecture(entry: Entry) -> Callable[..., paddle.nn.Layer]:
    if entry.library in PACKAGES or "." in entry.builder or entry.builder in WRAPPERS:
        return _callable(entry, entry.builder)
    if entry.library == "paddleclas":
        try:
            return backbone(entry.builder)
        except KeyError:
            raise CatalogError(
                f"`{entry.name}` names `{entry.builder}`, which is not a backbone of PaddleClas."
            ) from None
    if entry.builder not in ARCHITECTURES:
        raise CatalogError(
            f"`{entry.name}` names the architecture `{entry.builder}` "
            f"(accepted: {', '.join(sorted(ARCHITECTURES))})."
        )
    return ARCHITECTURES[entry.builder]


def source_of(entry: Entry) -> tuple[str, str]:
    """Return the origin of the model's code, and the library with its version."""
    if entry.library == "paddleclas":
        return CLAS_SOURCE, f"paddleclas {version(DISTRIBUTION)}"
    if entry.library in PACKAGES:
        package = PACKAGES[entry.library]
        return package.source, f"{entry.library} {version(package.distribution)}"
    if entry.builder in VISION or "." in entry.builder:
        return ZOO_SOURCE, f"paddle {paddle.version.full_version}"
    return BUILDER_SOURCE, ""


def model_name_of(entry: Entry) -> str:
    """Return the name of the entry's model: for a wrapper, of the layer or function in it."""
    path = entry.builder
    if path in WRAPPERS:
        value = next(value for value in entry.overrides.values() if isinstance(value, dict))
        path = value.get(CALL) or value[MEMBER]
    return path.rpartition(".")[2]


def capture_entry(entry: Entry, layer: paddle.nn.Layer) -> list[Sample]:
    """Return the graphs of one call of `layer` with the entry's example inputs.

    Raises:
        CaptureError: the layer cannot be traced.
    """
    source, library_version = source_of(entry)
    provenance = Provenance(
        source=source,
        license="Apache-2.0",
        tags=entry.tags,
        model_name=model_name_of(entry),
        library_version=library_version,
    )
    wrapped = extract(
        name=entry.name, task=entry.task, dynamic=bool(entry.dynamic), provenance=provenance
    )(layer)
    examples = {
        name: paddle.to_tensor(array.astype("float32") if array.dtype.kind == "f" else array)
        for name, array in make_arrays(entry).items()
    }
    # `_0`, `_1`, … are arguments by position.
    names = sorted(name for name in examples if name[0] == "_" and name[1:].isdigit())
    wrapped(*[examples.pop(name) for name in names], **examples)
    return wrapped.samples


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Capture the entry of `payload["line"]` and write its rows to `payload["out"]`.

    With `is_audit` nothing is written.
    """
    del directory
    entry = parse_line(payload["line"])
    layer = build_layer(entry)
    reporter.enter("capture")
    samples = capture_entry(entry, layer)
    if payload.get("is_twice"):
        check_hashes(samples, capture_entry(entry, build_layer(entry)))
    if payload.get("is_audit"):
        reporter.send({"num_graphs": len(samples)})
        return
    reporter.enter("write")
    _write(samples, {"model_source_hash": model_source_hash(layer)}, Path(payload["out"]))
    cpu_s = round(time.process_time(), 3)
    num_ops = sum(sample.num_ops for sample in samples)
    reporter.send({"num_graphs": len(samples), "num_ops": num_ops, "cpu_s": cpu_s})


def _write(samples: list[Sample], columns: dict[str, Any], path: Path) -> None:
    rows = [sample_to_row(sample, {**derived_columns(sample), **columns}) for sample in samples]
    write_table(rows, path)


WARM_UP = (
    "paddle/warm-up | other | paddle | convmixer | width=8 depth=1 | x=normal(1,3,32,32) "
    "| float32 | eval | |"
)
"""An entry that is captured and discarded before the first job, so that jobs share the lazy imports
and the operator table."""


def prepare() -> None:
    """Import the package of the jobs' models, and capture an example."""
    entry = parse_line(WARM_UP)
    with tempfile.TemporaryDirectory() as directory:
        _write(capture_entry(entry, build_layer(entry)), {}, Path(directory) / "row.parquet")
    package = PACKAGES.get(os.environ.get(LIBRARY_VARIABLE, ""))
    if package is not None:
        preload(package)
