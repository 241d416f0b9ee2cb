"""The `kernels` table: a row for each kernel that a compiler generated for a graph."""

from __future__ import annotations

import pyarrow as pa

from .version import table_metadata

KERNELS_SCHEMA = pa.schema(
    [
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("kernel_id", pa.string(), nullable=False),
        pa.field("subgraph_hash", pa.string(), nullable=False),
        pa.field("sample_id", pa.string(), nullable=False),
        pa.field("framework", pa.string(), nullable=False),
        pa.field("compiler", pa.string(), nullable=False),
        pa.field("compiler_version", pa.string(), nullable=False),
        pa.field("options", pa.string(), nullable=False),
        pa.field("device", pa.string(), nullable=False),
        pa.field("device_name", pa.string(), nullable=False),
        pa.field("threads", pa.int32(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("entry", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("launch", pa.string(), nullable=False),
        pa.field("operators", pa.list_(pa.string()), nullable=False),
        pa.field("ops", pa.list_(pa.int32())),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("num_kernels", pa.int32(), nullable=False),
        pa.field("library_calls", pa.list_(pa.string()), nullable=False),
        pa.field("compile_time_s", pa.float64(), nullable=False),
        pa.field("latency_ms", pa.float64(), nullable=False),
    ],
    metadata=table_metadata("kernels"),
)
"""A row is one generated function as source code, which this library never runs."""
