"""The `subgraphs` table: a row for each distinct part of many graphs.

It has the columns of the `graphs` table, followed by the results of merging equal parts.
"""

from __future__ import annotations

import pyarrow as pa

from .graphs import GRAPHS_SCHEMA
from .version import table_metadata

SUBGRAPH_FIELDS = [
    ("subgraph_hash", pa.string()),
    ("method", pa.string()),
    ("num_families", pa.int64()),
    ("splits", pa.list_(pa.string())),
    ("has_statistics", pa.bool_()),
]
"""Columns of a part in addition to those of a graph. `family` is that of the first graph with the
part."""

SUBGRAPHS_SCHEMA = pa.schema(
    [*GRAPHS_SCHEMA, *(pa.field(name, kind) for name, kind in SUBGRAPH_FIELDS)],
    metadata=table_metadata("subgraphs"),
)
