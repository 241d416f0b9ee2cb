"""The tables beside a built dataset: which entries of its catalogs gave no row, and why."""

from __future__ import annotations

import pyarrow as pa

from .version import table_metadata


def _schema(table: str, fields: list[pa.Field]) -> pa.Schema:
    version = pa.field("schema_version", pa.int32(), nullable=False)
    return pa.schema([version, *fields], metadata=table_metadata(table))


_ENTRY = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("task", pa.string(), nullable=False),
    pa.field("library", pa.string(), nullable=False),
]

FAILURES_SCHEMA = _schema(
    "failures",
    [
        *_ENTRY,
        pa.field("stage", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("catalog_line", pa.string(), nullable=False),
    ],
)
"""A row is an entry of a catalog, or a graph of one, that is not in the dataset.

`stage` is where it ended: `build`, `capture` or `write`; `split` for a graph that was captured and
would link two splits. `kind` is the class that docs count it by, `reason` what was said.
"""

DUPLICATES_SCHEMA = _schema(
    "duplicates",
    [
        *_ENTRY,
        pa.field("is_same_as", pa.string(), nullable=False),
        pa.field("signature_hash", pa.string(), nullable=False),
        pa.field("catalog_line", pa.string(), nullable=False),
    ],
)
"""A row is a captured graph that is left out since an equal one is in.

`is_same_as` is the id of that one, `signature_hash` what both have.
"""

SPLIT_STAGE = "split"
"""The stage of graphs that were captured, but would let one split leak into another."""

FAILURE_DESCRIPTIONS = {
    "schema_version": "version of this format",
    "id": "name of the entry, or of its graph",
    "task": "cv, nlp, audio, multimodal, scientific or other",
    "library": "library of the model",
    "stage": "build, capture, write; split where the graph would link two splits",
    "kind": "class of the failure, as counted in docs",
    "reason": "what was said",
    "catalog_line": "line of the builder's catalog",
}

DUPLICATE_DESCRIPTIONS = {
    **{name: FAILURE_DESCRIPTIONS[name] for name in ("schema_version", "id", "task", "library")},
    "is_same_as": "id of the equal graph that is in",
    "signature_hash": "signature that both have",
    "catalog_line": "line of the builder's catalog",
}
