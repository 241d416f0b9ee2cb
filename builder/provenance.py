"""Build columns of a graph, derived from the catalog, the library and the model's class."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets.analysis.hashes import structure_hash
from graphnet_datasets.sample import Sample

from .catalog import Entry

SEED = 0
"""Seed of random buffers and of example inputs; weights have no elements."""

TRUNCATED = "truncated"
"""The tag of graphs with fewer layers than the published model."""

OWN_SOURCE = "graphnet-datasets/builder"


def build_columns(entry: Entry, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the build columns and the tags of a row.

    The hash of the model's source is copied from the row: only the worker knows the class.
    """
    version = (row["provenance"] or {}).get("library_version") or ""
    is_truncated = is_cut(entry)
    tags = [*dict.fromkeys([*(row["tags"] or ()), *([TRUNCATED] if is_truncated else ())])]
    return {
        "tags": tags,
        "library": entry.library,
        "library_version": version.rpartition(" ")[2] or None,
        "catalog_line": entry.line,
        "overrides": json.dumps(entry.overrides, separators=(",", ":")),
        "input_specification": entry.line.split(" | ")[5].strip(),
        "seed": SEED,
        "model_source_hash": row.get("model_source_hash"),
        "is_truncated": is_truncated,
        "is_reimplementation": row["source"] == OWN_SOURCE,
    }


def license_of(row: Mapping[str, Any]) -> str | None:
    """Return the licence of a row's model; rows without a known library keep their licence.

    >>> license_of({"library": "spandrel", "model_name": "LaMa.LaMa", "license": "MIT"})
    'Apache-2.0'
    """
    from .libraries import LIBRARIES  # imports torch, which workers of paddle do without

    library = LIBRARIES.get(row.get("library") or "")
    return library.license_of(row["model_name"] or "") if library else row.get("license")


def is_cut(entry: Entry) -> bool:
    """Return whether a model has fewer layers than published, by the catalog's tag or its depth.

    A walk sets `stack_depth` to keep the first layers of each stack. A model with reduced width is
    a different model, tagged `small`.

    >>> from .catalog import parse_line
    >>> line = "t/a | nlp | transformers | BertModel | {} | x=ids(1,8; 9) | float32 | eval | |"
    >>> is_cut(parse_line(line.format("stack_depth=2"))), is_cut(parse_line(line.format("")))
    (True, False)
    """
    return "stack_depth" in entry.overrides or TRUNCATED in entry.tags


def model_source_hash(model: object) -> str | None:
    """Return the SHA-256 of the file that defines a model's class, or None if there is no file.

    A wrapper that only changes the call refers to the model by `called_model`.
    """
    model = getattr(model, "called_model", model)
    try:
        path = inspect.getsourcefile(type(model))
    except TypeError:
        return None
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else None


def check_hashes(samples: Iterable[Sample], again: Iterable[Sample]) -> None:
    """Raise `RuntimeError` if two captures of a model have different structure hashes."""
    before, after = ([structure_hash(sample) for sample in part] for part in (samples, again))
    if before != after:
        raise RuntimeError(f"A second capture has other hashes: {before}, then {after}.")
