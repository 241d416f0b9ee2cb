"""The tuning tables: operators extracted from graphs, and measurements of their schedules."""

from __future__ import annotations

import pyarrow as pa

from ..schema.version import table_metadata

_VERSIONS = pa.list_(pa.struct([("name", pa.string()), ("version", pa.string())]))

TUNING_TASKS_SCHEMA = pa.schema(
    [
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("task_id", pa.string(), nullable=False),
        pa.field("structural_hash", pa.string(), nullable=False),
        pa.field("hash_version", pa.string(), nullable=False),
        pa.field("workload_json", pa.large_string(), nullable=False),
        pa.field("target_json", pa.string(), nullable=False),
        pa.field("task_name", pa.string(), nullable=False),
        pa.field("family", pa.string(), nullable=False),
        pa.field("arg_shapes", pa.list_(pa.list_(pa.int64())), nullable=False),
        pa.field("arg_dtypes", pa.list_(pa.string()), nullable=False),
        pa.field("flops", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field(
            "sources",
            pa.list_(
                pa.struct(
                    [
                        ("sample_id", pa.string()),
                        ("graph_hash", pa.string()),
                        ("count", pa.int64()),
                    ]
                )
            ),
            nullable=False,
        ),
        pa.field("pipeline", pa.string(), nullable=False),
        pa.field("tool_versions", _VERSIONS, nullable=False),
    ],
    metadata=table_metadata("tuning_tasks"),
)
"""A row is one fused operator on one target.

`task_id` is the blake2b of `workload_json` and `target_json`, which are data for an isolated worker
to parse. `structural_hash` is TVM's, of the version `hash_version`. The shapes and dtypes are those
of the arguments, outputs last. `flops` counts the operations of a call, and `bytes` is the size of
all arguments. `sources` lists the graphs that contain the operator, by `structure_hash`, with their
numbers of calls. `pipeline` names the passes applied before extraction.
"""

TUNING_RECORDS_SCHEMA = pa.schema(
    [
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("record_id", pa.string(), nullable=False),
        pa.field("task_id", pa.string(), nullable=False),
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("trace_json", pa.string(), nullable=False),
        pa.field("trace_hash", pa.string(), nullable=False),
        pa.field("tuner", pa.string(), nullable=False),
        pa.field("tuner_options", pa.string(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("trial", pa.int32(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("predicted", pa.float32()),
        pa.field("predicted_std", pa.float32()),
        pa.field("features", pa.list_(pa.list_(pa.float32()))),
        pa.field("feature_set", pa.string(), nullable=False),
        pa.field("times_ms", pa.list_(pa.float64()), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("repeat", pa.int32(), nullable=False),
        pa.field("min_repeat_ms", pa.int32(), nullable=False),
        pa.field("warmup", pa.int32(), nullable=False),
        pa.field("anchor_ms", pa.list_(pa.float64()), nullable=False),
        pa.field("build_s", pa.float64()),
        pa.field("run_s", pa.float64()),
        pa.field("trial_s", pa.float64()),
        pa.field("tuner_s", pa.float64()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
        pa.field("max_abs_error", pa.float64()),
        pa.field("min_t", pa.float64()),
        pa.field("input_seed", pa.int64(), nullable=False),
        pa.field("device", pa.string(), nullable=False),
        pa.field("mcpu", pa.string(), nullable=False),
        pa.field("num_threads", pa.int32(), nullable=False),
        pa.field("affinity", pa.string(), nullable=False),
        pa.field("load_average", pa.float64()),
        pa.field("tool_versions", _VERSIONS, nullable=False),
        pa.field("created_at", pa.timestamp("us", tz="UTC")),
    ],
    metadata=table_metadata("tuning_records"),
)
"""A row is one measurement of one schedule of a task, or its failure.

`trace_json` can be replayed on the task's workload in an isolated worker; `trace_hash` is its
blake2b. `times_ms` has the milliseconds per call of all repetitions, in order; it is empty unless
`status` is ok. `anchor_ms` are times of a fixed kernel measured with the batch, to show drift.
`features` has the shape [stores, features] and belongs to the set `feature_set`. `predicted` is in
the tuner's own unit. `trial_s` is the time of the trial without waiting for a worker, `tuner_s` its
share of the tuner's own time. `max_abs_error` and `min_t` compare with the unscheduled workload.
"""
