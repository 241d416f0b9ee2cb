"""The `subgraphs` table: a row for each different part of many graphs.

It has the columns of the `graphs` table, and behind them what merging equal parts told.
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
"""What is known of a part beside its graph. `subgraph_hash` is equal for parts with the same
signature and the same strides, 32 hexadecimal digits; `method` is how it was found;
`num_families` counts the families of graphs that it occurs in, and `splits` are those of these
families; `has_statistics` tells whether statistics or elements are known of every tensor that it
takes. `family` is that of the graph that it was cut out of first."""

SUBGRAPHS_SCHEMA = pa.schema(
    [*GRAPHS_SCHEMA, *(pa.field(name, kind) for name, kind in SUBGRAPH_FIELDS)],
    metadata=table_metadata("subgraphs"),
)
