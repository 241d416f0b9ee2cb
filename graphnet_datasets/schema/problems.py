"""The `problems` and `solutions` tables: computations with workloads, and programs for them."""

from __future__ import annotations

import pyarrow as pa

from .version import table_metadata

PROBLEM_INPUT_FIELDS = [
    ("name", pa.string()),
    ("role", pa.string()),
    ("kind", pa.string()),
    ("rank", pa.int32()),
]
"""An input of all workloads of a problem. `kind` is float, integer, bool or complex."""

WORKLOAD_FIELDS = [
    ("config", pa.string()),
    ("part_id", pa.string()),
    ("subgraph_hash", pa.string()),
    ("dtypes", pa.list_(pa.string())),
    ("shapes", pa.list_(pa.list_(pa.int64()))),
    ("flops", pa.int64()),
    ("bytes", pa.int64()),
    ("eager_t", pa.float64()),
    ("tolerance_t", pa.float64()),
    ("num_occurrences", pa.int64()),
    ("parents", pa.list_(pa.string())),
]
"""A part of a graph as a workload of a problem. The row of the part contains its graph, which is
the reference, and the strides, statistics and symbols of the inputs."""

PROBLEMS_SCHEMA = pa.schema(
    [
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("category", pa.string(), nullable=False),
        pa.field("framework", pa.string(), nullable=False),
        pa.field("operators", pa.list_(pa.string()), nullable=False),
        pa.field("num_ops", pa.int64(), nullable=False),
        pa.field("num_workloads", pa.int64(), nullable=False),
        pa.field("num_occurrences", pa.int64(), nullable=False),
        pa.field("num_parents", pa.int64(), nullable=False),
        pa.field("split_group", pa.string(), nullable=False),
        pa.field("parent_splits", pa.list_(pa.string()), nullable=False),
        pa.field("form", pa.string(), nullable=False),
        pa.field("inputs", pa.list_(pa.struct(PROBLEM_INPUT_FIELDS)), nullable=False),
        pa.field("attributes", pa.list_(pa.string()), nullable=False),
        pa.field("workloads", pa.list_(pa.struct(WORKLOAD_FIELDS)), nullable=False),
        pa.field("licenses", pa.list_(pa.string()), nullable=False),
    ],
    metadata=table_metadata("problems"),
)
"""A row is one computation with its workloads. It contains no program: the graph of each workload
is a row of `sole_op`, `typical` or `fusible`."""

VERDICT_FIELDS = [
    ("part_id", pa.string()),
    ("outcome", pa.string()),
    ("cheat", pa.string()),
    ("min_t", pa.float64()),
    ("tolerance_t", pa.float64()),
    ("speedup", pa.float64()),
    ("speedup_low", pa.float64()),
    ("speedup_high", pa.float64()),
    ("latency_ms", pa.float64()),
    ("share_of_bound", pa.float64()),
    ("message", pa.string()),
]
"""The verdict on a solution for one workload."""

SOLUTIONS_SCHEMA = pa.schema(
    [
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("solution_id", pa.string(), nullable=False),
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("form", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("author", pa.string(), nullable=False),
        pa.field("license", pa.string(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("source_hash", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("build_log", pa.string(), nullable=False),
        pa.field("device", pa.string(), nullable=False),
        pa.field("device_name", pa.string(), nullable=False),
        pa.field("threads", pa.int32(), nullable=False),
        pa.field("is_accepted", pa.bool_(), nullable=False),
        pa.field("speedup", pa.float64()),
        pa.field("speedup_low", pa.float64()),
        pa.field("speedup_high", pa.float64()),
        pa.field("share_of_bound", pa.float64()),
        pa.field("verdicts", pa.list_(pa.struct(VERDICT_FIELDS)), nullable=False),
        pa.field("library_version", pa.string(), nullable=False),
    ],
    metadata=table_metadata("solutions"),
)
"""A row is a solution of a problem with the verdict of one judgement. `source` is text that this
library runs only in confined processes, and only with `trust_remote_code`."""
