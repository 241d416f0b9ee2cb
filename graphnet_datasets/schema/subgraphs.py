"""The `subgraphs` table: a row for each distinct part of many graphs.

It has the columns of the `graphs` table, followed by the results of merging equal parts.
"""

from __future__ import annotations

import pyarrow as pa

from .columns import Column, arrow_schema
from .graphs import GRAPH_COLUMNS

SUBGRAPH_COLUMNS = (
    *GRAPH_COLUMNS,
    Column(
        "subgraph_hash",
        pa.string(),
        "32 hexadecimal digits, equal for parts with the same signature and strides",
    ),
    Column("method", pa.string(), "how the part was found"),
    Column("num_families", pa.int64(), "number of families of graphs in which it occurs"),
    Column("splits", pa.list_(pa.string()), "splits of these families"),
    Column(
        "tasks",
        pa.list_(pa.string()),
        "tasks of the graphs in which it occurs",
        is_later=True,
    ),
    Column(
        "has_statistics",
        pa.bool_(),
        "whether statistics or elements of all its input tensors are known",
    ),
)
"""Columns of a graph, followed by those of a part. `family` is that of the first graph with the
part."""

SUBGRAPHS_SCHEMA = arrow_schema("subgraphs", SUBGRAPH_COLUMNS)
"""The Arrow schema of the `subgraphs` table."""
