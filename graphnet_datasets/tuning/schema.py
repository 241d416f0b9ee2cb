"""The tuning tables: operators extracted from graphs, and measurements of their schedules."""

from __future__ import annotations

import pyarrow as pa

from ..schema.columns import Column, Structs, required

_VERSION_FIELDS = (
    Column("name", pa.string(), "tvm, ffi, llvm, tc …"),
    Column("version", pa.string(), "version of the tool"),
)

_SOURCE_FIELDS = (
    Column("sample_id", pa.string(), "id of the graph"),
    Column("graph_hash", pa.string(), "`structure_hash` of the graph"),
    Column("count", pa.int64(), "number of calls in the graph"),
)

TASK_COLUMNS = (
    required("schema_version", pa.int32(), "version of the format"),
    required("task_id", pa.string(), "blake2b of the workload and the target"),
    required("structural_hash", pa.string(), "hash of the workload in TVM's databases"),
    required("hash_version", pa.string(), "version of TVM that computed the hash"),
    required(
        "workload_json",
        pa.large_string(),
        "the unscheduled operator as JSON, IR or a definition; parse it in an isolated process",
    ),
    required(
        "target_json",
        pa.string(),
        "target: language (`llvm` is TVM's), processor and number of threads",
    ),
    required("task_name", pa.string(), "name of the fused function"),
    required("family", pa.string(), "kind of operator: matmul, conv2d, softmax …"),
    required("arg_shapes", pa.list_(pa.list_(pa.int64())), "shape of each argument; outputs last"),
    required("arg_dtypes", pa.list_(pa.string()), "dtype of each argument"),
    required(
        "flops", pa.int64(), "floating-point operations of a call; 0 if TVM cannot count them"
    ),
    required("bytes", pa.int64(), "bytes of all arguments"),
    required("sources", Structs(_SOURCE_FIELDS), "graphs that contain the operator"),
    required("pipeline", pa.string(), "TVM passes applied before extraction, or the language"),
    required("tool_versions", Structs(_VERSION_FIELDS), "versions of the code generators"),
)
"""A row is one fused operator on one target.

`task_id` is the blake2b of `workload_json` and `target_json`, which are data for an isolated worker
to parse. `structural_hash` is TVM's, of the version `hash_version`. The shapes and dtypes are those
of the arguments, outputs last. `flops` counts the operations of a call, and `bytes` is the size of
all arguments. `sources` lists the graphs that contain the operator, by `structure_hash`, with their
numbers of calls. `pipeline` names the passes applied before extraction.
"""

RECORD_COLUMNS = (
    required("schema_version", pa.int32(), "version of the format"),
    required("record_id", pa.string(), "identifier of the row"),
    required("task_id", pa.string(), "the task in `tuning_tasks`"),
    required("run_id", pa.string(), "identifier of the tuning run"),
    required(
        "trace_json",
        pa.string(),
        "the schedule as JSON, TVM's trace or options; parse it in an isolated process",
    ),
    required("trace_hash", pa.string(), "blake2b of the trace"),
    required("tuner", pa.string(), "tuner that proposed the schedule"),
    required("tuner_options", pa.string(), "options of the tuner, as JSON"),
    required("origin", pa.string(), "random, mutate, crossover, template or predict"),
    required("trial", pa.int32(), "position in the run's order of measurement"),
    required("seed", pa.int64(), "seed of the run"),
    Column("predicted", pa.float32(), "the tuner's prediction, in its own unit"),
    Column("predicted_std", pa.float32(), "standard deviation of the prediction"),
    Column(
        "features", pa.list_(pa.list_(pa.float32())), "a feature vector for each store statement"
    ),
    required("feature_set", pa.string(), "name and version of the feature set"),
    Column(
        "machine_code",
        pa.list_(pa.float32()),
        "features of the machine code, in the order of `tuning.machine_code.FEATURE_NAMES`",
    ),
    Column("machine_code_set", pa.string(), "name and version of these features"),
    required(
        "times_ms",
        pa.list_(pa.float64()),
        "milliseconds per call of each repetition, in order; empty if the trial failed",
    ),
    required("number", pa.int32(), "calls per repetition"),
    required("repeat", pa.int32(), "requested number of repetitions"),
    required("min_repeat_ms", pa.int32(), "minimum duration of a repetition"),
    required("warmup", pa.int32(), "calls before the first repetition"),
    required(
        "anchor_ms",
        pa.list_(pa.float64()),
        "times of a fixed matrix product measured with the batch, to show drift",
    ),
    Column("build_s", pa.float64(), "build time in seconds"),
    Column("run_s", pa.float64(), "time of checking and measuring in seconds"),
    Column("trial_s", pa.float64(), "total time of the trial in seconds, without waiting"),
    Column("tuner_s", pa.float64(), "the trial's share of the tuner's own time in seconds"),
    required(
        "status",
        pa.string(),
        "ok, wrong, uncheckable, schedule_failed, build_failed, run_failed, timeout, "
        "out_of_memory, crash",
    ),
    required("error", pa.string(), "error message of a failed trial"),
    Column(
        "max_abs_error", pa.float64(), "largest absolute difference from the unscheduled operator"
    ),
    Column(
        "min_t", pa.float64(), "smallest tolerance at which the result is correct, as in `runs`"
    ),
    required("input_seed", pa.int64(), "seed of the inputs"),
    required("device", pa.string(), "cpu or cuda"),
    required("mcpu", pa.string(), "name of the processor in the target, for TVM LLVM's"),
    required("num_threads", pa.int32(), "threads of the generated code"),
    required("affinity", pa.string(), "cores available to the process"),
    Column("load_average", pa.float64(), "load average of the machine at the start of the batch"),
    required("tool_versions", Structs(_VERSION_FIELDS), "versions of the code generators"),
    Column("created_at", pa.timestamp("us", tz="UTC"), "time of the measurement"),
)
"""A row is one measurement of one schedule of a task, or its failure.

`trace_json` can be replayed on the task's workload in an isolated worker; `trace_hash` is its
blake2b. `times_ms` has the milliseconds per call of all repetitions, in order; it is empty unless
`status` is ok. `anchor_ms` are times of a fixed kernel measured with the batch, to show drift.
`features` has the shape [stores, features] and belongs to the set `feature_set`; `machine_code` is
a vector of instruction counts and estimates for the compiled program, of the set
`machine_code_set`. `predicted` is in the tuner's own unit. `trial_s` is the time of the trial
without waiting for a worker, `tuner_s` its share of the tuner's own time. `max_abs_error` and
`min_t` compare with the unscheduled workload.
"""
