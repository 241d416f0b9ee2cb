"""Tables of catalog entries that are missing from a built dataset, with reasons."""

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
"""A row is an entry of a catalog, or one of its graphs, that is not in the dataset.

`stage` is the failed stage, `build`, `capture` or `write`, or `split` for a captured graph that
would link two splits. `kind` is the class of failure for statistics, `reason` the error message.
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
"""A row is a captured graph that is not in the dataset because it equals a graph that is.

`is_same_as` is the id of the other graph, `signature_hash` the signature of both.
"""

SPLIT_STAGE = "split"
"""The stage of captured graphs that would make one split leak into another."""

FAILURE_DESCRIPTIONS = {
    "schema_version": "version of the format",
    "id": "name of the catalog entry or of its graph",
    "task": "cv, nlp, audio, multimodal, scientific or other",
    "library": "library of the model",
    "stage": "build, capture or write; `split` if the graph would link two splits",
    "kind": "class of the failure",
    "reason": "error message",
    "catalog_line": "line of the builder's catalog",
}

DUPLICATE_DESCRIPTIONS = {
    **{name: FAILURE_DESCRIPTIONS[name] for name in ("schema_version", "id", "task", "library")},
    "is_same_as": "id of the equal graph in the dataset",
    "signature_hash": "signature of both graphs",
    "catalog_line": "line of the builder's catalog",
}
