"""The `runs` table: one row per timed run of one sample under one compiler.

Latencies are in milliseconds, compile times in seconds, memory in bytes; figures that were not
measured are null. `status` is the phase in which a run ended, `reason` the cause.
"""

from __future__ import annotations

import enum
from typing import Any

import pyarrow as pa

from .columns import Column, Struct, Structs, arrow_schema, later_columns
from .version import SCHEMA_VERSION


class Status(enum.StrEnum):
    """The outcome of a run."""

    OK = "ok"
    """Timed and compared; whether it is correct at a tolerance t is `min_t <= t`."""
    OUTPUT_MISMATCH = "output_mismatch"
    """The candidate returned another number of outputs, another shape or another dtype."""
    RUN_FAILED = "run_failed"
    """The compiled callable raised, crashed, ran out of memory or out of time."""
    COMPILE_FAILED = "compile_failed"
    """Compilation raised, crashed, ran out of memory or out of time."""
    BASELINE_FAILED = "baseline_failed"
    """The sample itself cannot be created or run under eager; never the compiler's fault."""
    HARNESS_FAILED = "harness_failed"
    """The worker was lost twice before the baseline had run, or the harness of an imported log
    discarded its own times. The record says nothing about the sample."""


class Reason(enum.StrEnum):
    """The cause of a failed run."""

    NONE = ""
    EXCEPTION = "exception"
    CRASH = "crash"
    OUT_OF_MEMORY = "out_of_memory"
    TIMEOUT = "timeout"
    COUNT = "output_count"
    SHAPE = "output_shape"
    DTYPE = "output_dtype"
    TYPE = "output_type"
    CONSTANT = "output_constant"
    """The outputs hardly change with the inputs, and not in the way of eager's outputs."""
    MUTATION = "input_mutation"
    TAMPERING = "tampering"
    """The candidate replaced a part of the timing code, or the parent process saw other times."""
    NOT_FINITE = "not_finite"
    """Eager's outputs contain NaN or infinities that the graph does not write itself."""
    STALE = "stale"
    """At another size or number, the candidate repeats an earlier answer."""
    NOTHING_VARIES = "nothing_varies"
    """Eager returns the same outputs for all inputs, so that a stored answer would be correct."""


ERROR_CODES: dict[Status, int | None] = {
    Status.OK: None,
    Status.OUTPUT_MISMATCH: 2,
    Status.RUN_FAILED: 2,
    Status.COMPILE_FAILED: 3,
    Status.BASELINE_FAILED: None,
    Status.HARNESS_FAILED: None,
}
"""The report's error code c per status; accuracy (c = 1) depends on t and is not a status."""

COLD, WARM, CARRIED = ("cold", "warm", "carried")
"""The state of the compile caches when a run started: empty, filled by earlier runs on the same
machine, or filled elsewhere and linked into the run's own caches."""

PHASES = ("load", "baseline", "compile", "run", "judge")

OUTPUT_FIELDS = (
    Column("dtype", pa.string(), "dtype of eager's output"),
    Column("candidate_dtype", pa.string(), "dtype of the candidate's output"),
    Column("shape", pa.list_(pa.int64()), "shape of eager's output"),
    Column("candidate_shape", pa.list_(pa.int64()), "shape of the candidate's output"),
    Column("num_elements", pa.int64(), "number of compared elements"),
    Column("max_abs_error", pa.float64(), "largest absolute difference from eager"),
    Column("max_rel_error", pa.float64(), "largest relative difference from eager"),
    Column("mismatch_share", pa.float64(), "share of the elements that are not bit-equal"),
    Column("is_nonfinite_mismatch", pa.bool_(), "whether NaN or infinities are at other positions"),
    Column(
        "rmse_baseline", pa.float64(), "root mean square error of eager against the float64 oracle"
    ),
    Column(
        "rmse_candidate", pa.float64(), "root mean square error of the candidate against the oracle"
    ),
    Column("min_t", pa.float64(), "smallest t at which the output is right"),
    Column("null_t", pa.float64(), "smallest t at which zeros would pass"),
    Column(
        "null_mean_t",
        pa.float64(),
        "smallest t at which a constant, the mean, would pass; null if all elements are equal",
    ),
    Column(
        "constant_t",
        pa.float64(),
        "smallest t at which the first call's output passes for later calls",
    ),
    Column("rms_oracle", pa.float64(), "root mean square of the oracle's finite elements"),
    Column("is_random", pa.bool_(), "whether the output depends on random draws"),
    Column(
        "random_test",
        pa.string(),
        "test of distributions with the smallest p-value; `same stream` if the output agrees "
        "with eager's in each call",
    ),
    Column("p_value", pa.float64(), "that p-value, corrected for the number of tests"),
)
"""The comparison of one output with eager's and with the float64 oracle."""

WRONG_FIELDS = (
    Column("output", pa.int64(), "position of the output"),
    Column("index", pa.list_(pa.int64()), "position of the element"),
    Column("candidate", pa.string(), "element of the candidate's output"),
    Column("baseline", pa.string(), "element of eager's output"),
    Column("seed", pa.int64(), "seed of the call's inputs"),
)
"""One wrong element."""

JUDGED_FIELDS = (
    Column("seed", pa.int64(), "seed of the call's inputs"),
    Column(
        "start", pa.int64(), "position of the first compared element; null if all were compared"
    ),
    Column("is_candidate_first", pa.bool_(), "order of the pair; null if the call was not timed"),
    Column("baseline_hash", pa.string(), "hash of the elements of eager's outputs"),
    Column("candidate_hash", pa.string(), "hash of the elements of the candidate's outputs"),
)
"""The judged outputs of one call. `make_inputs(sample, seed)` returns its inputs, in mode `fresh`
unless the seed is that of the run. `start` selects the compared elements as in
`frameworks.outputs.excerpt_of`."""

VARIED_FIELDS = (
    Column("kind", pa.string(), "difference from the first call: base, sizes or scalars"),
    Column("sizes", pa.string(), "sizes by the name of their symbol, as JSON"),
    Column("scalars", pa.string(), "numbers by the name of their input, as JSON"),
    Column("verdict", pa.string(), "verdict of the call"),
    Column("min_t", pa.float64(), "smallest t at which the call is right"),
    Column(
        "stale_t", pa.float64(), "smallest t at which eager's answer to another of the calls passes"
    ),
    Column(
        "max_abs_error", pa.float64(), "largest absolute difference from eager on the same inputs"
    ),
    Column("num_compilations", pa.int64(), "compilations during the call"),
    Column("message", pa.string(), "error of the call"),
)
"""One call after a single compilation. `verdict` is one of `benchmark.varied_calls.VERDICTS`."""

DEVICE_STATE_FIELDS = (
    Column("sm_clock_mhz", pa.int64(), "clock of the multiprocessors"),
    Column("memory_clock_mhz", pa.int64(), "clock of the memory"),
    Column("temperature_c", pa.int64(), "temperature"),
    Column("power_w", pa.float64(), "power"),
    Column("throttle_reasons", pa.list_(pa.string()), "reasons of the driver for lower clocks"),
)
"""The state of a GPU reported by its driver at one moment; missing figures are null."""

RUN_COLUMNS = (
    Column("schema_version", pa.int32(), "version of the format"),
    Column("run_id", pa.string(), "name of the run"),
    # the sample
    Column("sample_id", pa.string(), "id of the graph"),
    Column("structure_hash", pa.string(), "hash of the graph without sizes"),
    Column("signature_hash", pa.string(), "hash of the graph with its sizes"),
    Column(
        "sample_digest",
        pa.string(),
        "hash of everything in the sample that a run depends on",
        is_later=True,
    ),
    Column("dataset", pa.string(), "dataset that holds the graph", is_later=True),
    Column("family", pa.string(), "group of similar models that are in one split"),
    Column("task", pa.string(), "cv, nlp, audio, multimodal, scientific or other"),
    Column("subtask", pa.string(), "purpose of the model within its task", is_later=True),
    Column("framework", pa.string(), "torch or paddle"),
    Column("source", pa.string(), "repository of the model's code"),
    Column("num_ops", pa.int64(), "number of operators of the graph"),
    # the arms and their settings
    Column(
        "compiler",
        pa.string(),
        "name of the compiler, or `module:attribute` of one that is not built in",
    ),
    Column("compiler_version", pa.string(), "its version"),
    Column(
        "compiler_source",
        pa.string(),
        "hash of its source files; null for compilers of this library",
        is_later=True,
    ),
    Column("compiler_options", pa.string(), "its options, as JSON"),
    Column("baseline", pa.string(), "the arm that it is compared with, normally eager"),
    Column("device", pa.string(), "cpu or cuda"),
    Column(
        "weights",
        pa.string(),
        "`parameters`: stored in the module, so that a compiler may fold them; `inputs`: "
        "passed with each call",
    ),
    Column("input_mode", pa.string(), "mode in which `make_inputs` drew the inputs"),
    Column("seed", pa.int64(), "seed of the inputs and weights"),
    Column(
        "cache_mode",
        pa.string(),
        "whether the processor's caches are left alone (`warm`) or emptied before each call "
        "(`cold`)",
    ),
    Column(
        "compile_cache",
        pa.string(),
        "compile caches at the start: `cold` (empty), `warm` (filled by earlier runs) or "
        "`carried` (filled on another machine); null in older records, whose caches were empty",
        is_later=True,
    ),
    Column(
        "launch_mode",
        pa.string(),
        "`stream`, or `cuda_graph` if both arms were captured and replayed; null on a CPU",
    ),
    Column("num_threads", pa.int32(), "threads of each arm"),
    # the outcome
    Column(
        "status", pa.string(), "how the run ended: ok, output_mismatch, or the part that failed"
    ),
    Column(
        "error_code",
        pa.int8(),
        "error code c of the GraphNet report; null if the outputs were compared",
    ),
    Column("phase", pa.string(), "phase in which a failed run ended"),
    Column("reason", pa.string(), "cause of a failure; empty for a run that finished"),
    Column("error_type", pa.string(), "class of the exception"),
    Column("error_message", pa.string(), "message of the exception"),
    Column(
        "upstream_status",
        pa.string(),
        "status that GraphNet's own tools report for an imported log",
    ),
    Column("upstream_speedup", pa.float64(), "speedup that they report", is_later=True),
    Column(
        "upstream_min_t",
        pa.float64(),
        "smallest t at which they find the graph right",
        is_later=True,
    ),
    Column(
        "upstream_passing_t",
        pa.list_(pa.int8()),
        "each whole t at which they find the graph right",
        is_later=True,
    ),
    Column("num_attempts", pa.int32(), "how often the run was started"),
    # times
    Column(
        "baseline_latency_ms",
        pa.list_(pa.float64()),
        "time of each call of the baseline, by the clock in `clock`",
    ),
    Column("candidate_latency_ms", pa.list_(pa.float64()), "time of each call of the candidate"),
    Column(
        "is_candidate_first",
        pa.list_(pa.bool_()),
        "for each pair of calls, whether the candidate was called first",
    ),
    Column(
        "speedup",
        pa.float64(),
        "exp of the centre (Hodges-Lehmann) of the pairs' log(baseline / candidate)",
    ),
    Column("speedup_low", pa.float64(), "lower end of its 95 % interval"),
    Column("speedup_high", pa.float64(), "upper end of its 95 % interval"),
    Column(
        "timed_in",
        pa.string(),
        "`pairs`: both arms in one process; `turns`: two processes that take turns",
        is_later=True,
    ),
    Column(
        "paired_speedup",
        pa.float64(),
        "for `turns`: the speedup that the pairs had shown",
        is_later=True,
    ),
    Column(
        "baseline_preemptions",
        pa.list_(pa.int32()),
        "how often the kernel took the processor away, for each call of the baseline",
        is_later=True,
    ),
    Column(
        "candidate_preemptions", pa.list_(pa.int32()), "likewise for the candidate", is_later=True
    ),
    Column(
        "num_calm_pairs",
        pa.int64(),
        "number of pairs without a preemption; only these count if there are ten",
        is_later=True,
    ),
    Column(
        "is_noisy",
        pa.bool_(),
        "whether the interval is wider than 5 % (or the precision of the settings, if "
        "larger), or other processes used the processors",
        is_later=True,
    ),
    Column("load", pa.float64(), "load average during the timed calls", is_later=True),
    Column(
        "other_cpu_share",
        pa.float64(),
        "share of all processors that other processes used",
        is_later=True,
    ),
    Column(
        "steal_share",
        pa.float64(),
        "share of all processors that other virtual machines used",
        is_later=True,
    ),
    Column(
        "clock",
        pa.string(),
        "clock of the latencies: `kernel` (stamps of the operating system's kernel around "
        "each call), `cuda_event` or `wall`",
    ),
    Column(
        "stopped_by",
        pa.string(),
        "why timing stopped: precision, noise_stable, max_pairs, budget, hard_budget or turns",
    ),
    Column(
        "baseline_alone_ms",
        pa.list_(pa.float64()),
        "times of eager in a process without the candidate",
    ),
    Column(
        "is_baseline_disturbed",
        pa.bool_(),
        "whether eager takes another time beside the candidate than alone",
    ),
    Column(
        "baseline_cpu_ms",
        pa.float64(),
        "median processor time of the baseline's calls",
        is_later=True,
    ),
    Column(
        "candidate_cpu_ms",
        pa.float64(),
        "median processor time of the candidate's calls",
        is_later=True,
    ),
    Column(
        "baseline_wall_ms",
        pa.float64(),
        "median wall time of the baseline's calls, the device synchronized",
    ),
    Column("candidate_wall_ms", pa.float64(), "median wall time of the candidate's calls"),
    Column(
        "baseline_kernel_ms",
        pa.float64(),
        "time in kernels per call of the baseline, by torch's profiler; on a CPU, in "
        "operators that torch dispatched at the top level, without fused code",
    ),
    Column("candidate_kernel_ms", pa.float64(), "time in kernels per call of the candidate"),
    Column(
        "baseline_num_kernels",
        pa.int64(),
        "kernels per call of the baseline; on a CPU, dispatched operators",
    ),
    Column("candidate_num_kernels", pa.int64(), "kernels per call of the candidate"),
    Column(
        "is_baseline_launch_bound",
        pa.bool_(),
        "whether the GPU is idle for more than half of the wall time",
    ),
    Column("is_candidate_launch_bound", pa.bool_(), "likewise for the candidate"),
    Column(
        "floor_ms",
        pa.float64(),
        "least time that the peak rates of the device allow for the work of the graph",
    ),
    Column("load_time_s", pa.float64(), "time to build the module and its inputs"),
    Column("compile_time_s", pa.float64(), "time to compile, with empty compile caches only"),
    Column("first_call_s", pa.float64(), "time of the first call after compiling"),
    Column(
        "break_even_calls",
        pa.int64(),
        "number of calls after which compiling pays; null if it never does",
    ),
    Column("num_recompilations", pa.int64(), "compilations after the first during the timed calls"),
    Column(
        "fallback_share",
        pa.float64(),
        "share of the operators that the compiler left to eager; null if unknown",
    ),
    Column("baseline_peak_memory_bytes", pa.int64(), "peak memory of the baseline"),
    Column("candidate_peak_memory_bytes", pa.int64(), "peak memory of the candidate"),
    Column("duration_s", pa.float64(), "time of the whole run"),
    # correctness
    Column("outputs", Structs(OUTPUT_FIELDS), "comparison of each output, over all judged calls"),
    Column(
        "wrong_elements",
        Structs(WRONG_FIELDS),
        "first wrong element at t = -3, and the one with the largest error, in the worst "
        "call of the worst output; null if all outputs pass",
        is_later=True,
    ),
    Column(
        "min_t",
        pa.float64(),
        "largest `min_t` of the outputs: the run is right at t = `min_t` and above; inf: at "
        "no t; null: nothing was compared",
    ),
    Column("null_t", pa.float64(), "smallest t at which trivial outputs would pass"),
    Column(
        "stale_t",
        pa.float64(),
        "smallest t at which an answer stored from other inputs would pass",
        is_later=True,
    ),
    Column(
        "eager_t",
        pa.float64(),
        "smallest t at which eager agrees with the float64 oracle; null without one",
        is_later=True,
    ),
    Column(
        "undecidable_reason",
        pa.string(),
        "sentence that explains why no verdict is possible; null if one is",
        is_later=True,
    ),
    Column(
        "is_random",
        pa.bool_(),
        "whether an output depends on random draws; null in older records",
        is_later=True,
    ),
    Column("is_deterministic", pa.bool_(), "whether eager repeats its outputs for equal seeds"),
    Column("determinism_t", pa.float64(), "`min_t` of eager against itself, with equal seeds"),
    Column(
        "judged", Structs(JUDGED_FIELDS), "the calls whose outputs were compared", is_later=True
    ),
    Column(
        "changed_state",
        pa.list_(pa.string()),
        "state of the process that the candidate changed outside of the graph, such as the "
        "default dtype",
        is_later=True,
    ),
    Column(
        "varied_calls",
        Structs(VARIED_FIELDS),
        "calls at other sizes and numbers after compiling once; null if not requested",
        is_later=True,
    ),
    Column("varied_verdict", pa.string(), "worst verdict of the varied calls", is_later=True),
    Column("varied_message", pa.string(), "reason of that verdict", is_later=True),
    Column(
        "num_varied_recompilations",
        pa.int64(),
        "compilations after the first of the varied calls",
        is_later=True,
    ),
    Column(
        "recompiles_each_call",
        pa.bool_(),
        "whether each call with other sizes or numbers was compiled anew",
        is_later=True,
    ),
    Column(
        "warnings",
        pa.list_(pa.string()),
        "remarks on the run: a name such as `noisy`, a colon and a sentence",
    ),
    # environment and time
    Column(
        "environment_id",
        pa.string(),
        "hash of the environment; figures of two environments are never mixed",
    ),
    Column("environment", pa.string(), "machine, operating system and versions, as JSON"),
    Column("device_before", Struct(DEVICE_STATE_FIELDS), "state of the GPU before the timed calls"),
    Column("device_after", Struct(DEVICE_STATE_FIELDS), "state of the GPU after the timed calls"),
    Column("settings_hash", pa.string(), "hash of the settings"),
    Column("settings", pa.string(), "settings of the run, as JSON"),
    Column("started_at", pa.string(), "start of the run, UTC"),
)
"""Columns of the `runs` table.

A verdict says nothing about a compiler at t >= `stale_t`, where an output stored from other inputs
passes, nor below `eager_t`, where eager itself differs from the oracle. If there are at least ten
pairs without preemption (`num_calm_pairs`), only they are evaluated. If timed calls change state
outside the graph (`changed_state`), the run is repeated, and the state is restored after each call.
"""

RUNS_SCHEMA = arrow_schema("runs", RUN_COLUMNS)
"""The Arrow schema of the `runs` table."""

LATER_COLUMNS = later_columns(RUN_COLUMNS)
"""Columns that files of this format version may lack; they are read as null."""


def empty_run() -> dict[str, Any]:
    """Return a row to be filled, with every column null except the format version."""
    row: dict[str, Any] = dict.fromkeys(RUNS_SCHEMA.names)
    row["schema_version"] = SCHEMA_VERSION
    return row
