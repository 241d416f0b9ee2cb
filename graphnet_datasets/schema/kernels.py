"""The `kernels` table: a row for each kernel that a compiler generated for a graph."""

from __future__ import annotations

import pyarrow as pa

from .columns import Column, required

KERNEL_COLUMNS = (
    required("schema_version", pa.int32(), "version of the format"),
    required(
        "kernel_id",
        pa.string(),
        "SHA-256 of the graph's hash, the compiler with version and options, the device's "
        "name, the threads, the position and the source",
    ),
    required("subgraph_hash", pa.string(), "`subgraph_hash` of the graph in `subgraphs`"),
    required("sample_id", pa.string(), "id of the graph"),
    required("framework", pa.string(), "torch or paddle"),
    required("compiler", pa.string(), "compiler that generated the code"),
    required("compiler_version", pa.string(), "its version"),
    required("options", pa.string(), "its options, as JSON"),
    required("device", pa.string(), "cpu or cuda"),
    required("device_name", pa.string(), "name of the processor or GPU"),
    required("threads", pa.int32(), "threads of the compiled code"),
    required("language", pa.string(), "language of the source"),
    required("entry", pa.string(), "name of the function"),
    required("source", pa.string(), "text of the function, which this library never runs"),
    required("launch", pa.string(), "how the function is launched, as JSON"),
    required(
        "operators", pa.list_(pa.string()), "operators of the graph that the function computes"
    ),
    Column(
        "ops",
        pa.list_(pa.int32()),
        "positions of these operators; if null, `operators` are the compiler's own names",
    ),
    required("position", pa.int32(), "index of the kernel in its graph"),
    required("num_kernels", pa.int32(), "number of kernels of the graph"),
    required("library_calls", pa.list_(pa.string()), "calls of the graph into libraries"),
    required("compile_time_s", pa.float64(), "time to compile the whole graph"),
    required("latency_ms", pa.float64(), "median time of a call of the whole graph"),
)
"""A row is one generated function as source code, which this library never runs."""
