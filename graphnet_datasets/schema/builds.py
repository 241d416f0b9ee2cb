"""Tables of catalog entries that are missing from a built dataset, with reasons."""

from __future__ import annotations

import pyarrow as pa

from .columns import required

_ENTRY = (
    required("schema_version", pa.int32(), "version of the format"),
    required("id", pa.string(), "name of the catalog entry or of its graph"),
    required("task", pa.string(), "cv, nlp, audio, multimodal, scientific or other"),
    required("library", pa.string(), "library of the model"),
)

FAILURE_COLUMNS = (
    *_ENTRY,
    required(
        "stage", pa.string(), "build, capture or write; `split` if the graph would link two splits"
    ),
    required("kind", pa.string(), "class of the failure"),
    required("reason", pa.string(), "error message"),
    required("catalog_line", pa.string(), "line of the builder's catalog"),
)
"""A row is an entry of a catalog, or one of its graphs, that is not in the dataset.

`stage` is the failed stage, `build`, `capture` or `write`, or `split` for a captured graph that
would link two splits. `kind` is the class of failure for statistics, `reason` the error message.
"""

DUPLICATE_COLUMNS = (
    *_ENTRY,
    required("is_same_as", pa.string(), "id of the equal graph in the dataset"),
    required("signature_hash", pa.string(), "signature of both graphs"),
    required("catalog_line", pa.string(), "line of the builder's catalog"),
)
"""A row is a captured graph that is not in the dataset because it equals a graph that is.

`is_same_as` is the id of the other graph, `signature_hash` the signature of both.
"""

SPLIT_STAGE = "split"
"""The stage of captured graphs that would make one split leak into another."""
