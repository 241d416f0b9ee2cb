"""The `runs` table: one row per timed run of one sample under one compiler.

Latencies are in milliseconds, compile times in seconds, memory in bytes; figures that were not
measured are null. `status` is the phase in which a run ended, `reason` the cause.
"""

from __future__ import annotations

import enum
from typing import Any

import pyarrow as pa

from .version import SCHEMA_VERSION, table_metadata


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

OUTPUT_FIELDS = pa.struct(
    [
        ("dtype", pa.string()),
        ("candidate_dtype", pa.string()),
        ("shape", pa.list_(pa.int64())),
        ("candidate_shape", pa.list_(pa.int64())),
        ("num_elements", pa.int64()),
        ("max_abs_error", pa.float64()),
        ("max_rel_error", pa.float64()),
        ("mismatch_share", pa.float64()),
        ("is_nonfinite_mismatch", pa.bool_()),
        ("rmse_baseline", pa.float64()),
        ("rmse_candidate", pa.float64()),
        ("min_t", pa.float64()),
        ("null_t", pa.float64()),
        ("null_mean_t", pa.float64()),
        ("constant_t", pa.float64()),
        ("rms_oracle", pa.float64()),
        ("is_random", pa.bool_()),
        ("random_test", pa.string()),
        ("p_value", pa.float64()),
    ]
)
"""The comparison of one output with eager's and with the float64 oracle."""

WRONG_FIELDS = pa.struct(
    [
        ("output", pa.int64()),
        ("index", pa.list_(pa.int64())),
        ("candidate", pa.string()),
        ("baseline", pa.string()),
        ("seed", pa.int64()),
    ]
)
"""One wrong element."""

JUDGED_FIELDS = pa.struct(
    [
        ("seed", pa.int64()),
        ("start", pa.int64()),
        ("is_candidate_first", pa.bool_()),
        ("baseline_hash", pa.string()),
        ("candidate_hash", pa.string()),
    ]
)
"""The judged outputs of one call. `make_inputs(sample, seed)` returns its inputs, in mode `fresh`
unless the seed is that of the run. `start` selects the compared elements as in
`frameworks.outputs.excerpt_of`."""

VARIED_FIELDS = pa.struct(
    [
        ("kind", pa.string()),
        ("sizes", pa.string()),
        ("scalars", pa.string()),
        ("verdict", pa.string()),
        ("min_t", pa.float64()),
        ("stale_t", pa.float64()),
        ("max_abs_error", pa.float64()),
        ("num_compilations", pa.int64()),
        ("message", pa.string()),
    ]
)
"""One call after a single compilation. `verdict` is one of `benchmark.varied_calls.VERDICTS`."""

DEVICE_STATE_FIELDS = pa.struct(
    [
        ("sm_clock_mhz", pa.int64()),
        ("memory_clock_mhz", pa.int64()),
        ("temperature_c", pa.int64()),
        ("power_w", pa.float64()),
        ("throttle_reasons", pa.list_(pa.string())),
    ]
)
"""The state of a GPU reported by its driver at one moment; missing figures are null."""

RUNS_SCHEMA = pa.schema(
    [
        ("schema_version", pa.int32()),
        ("run_id", pa.string()),
        # the sample
        ("sample_id", pa.string()),
        ("structure_hash", pa.string()),
        ("signature_hash", pa.string()),
        ("sample_digest", pa.string()),
        ("dataset", pa.string()),
        ("family", pa.string()),
        ("task", pa.string()),
        ("subtask", pa.string()),
        ("framework", pa.string()),
        ("source", pa.string()),
        ("num_ops", pa.int64()),
        # the arms and their settings
        ("compiler", pa.string()),
        ("compiler_version", pa.string()),
        ("compiler_source", pa.string()),
        ("compiler_options", pa.string()),
        ("baseline", pa.string()),
        ("device", pa.string()),
        ("weights", pa.string()),
        ("input_mode", pa.string()),
        ("seed", pa.int64()),
        ("cache_mode", pa.string()),
        ("compile_cache", pa.string()),
        ("launch_mode", pa.string()),
        ("num_threads", pa.int32()),
        # the outcome
        ("status", pa.string()),
        ("error_code", pa.int8()),
        ("phase", pa.string()),
        ("reason", pa.string()),
        ("error_type", pa.string()),
        ("error_message", pa.string()),
        ("upstream_status", pa.string()),
        ("upstream_speedup", pa.float64()),
        ("upstream_min_t", pa.float64()),
        ("upstream_passing_t", pa.list_(pa.int8())),
        ("num_attempts", pa.int32()),
        # times
        ("baseline_latency_ms", pa.list_(pa.float64())),
        ("candidate_latency_ms", pa.list_(pa.float64())),
        ("is_candidate_first", pa.list_(pa.bool_())),
        ("speedup", pa.float64()),
        ("speedup_low", pa.float64()),
        ("speedup_high", pa.float64()),
        ("timed_in", pa.string()),
        ("paired_speedup", pa.float64()),
        ("baseline_preemptions", pa.list_(pa.int32())),
        ("candidate_preemptions", pa.list_(pa.int32())),
        ("num_calm_pairs", pa.int64()),
        ("is_noisy", pa.bool_()),
        ("load", pa.float64()),
        ("other_cpu_share", pa.float64()),
        ("steal_share", pa.float64()),
        ("clock", pa.string()),
        ("stopped_by", pa.string()),
        ("baseline_alone_ms", pa.list_(pa.float64())),
        ("is_baseline_disturbed", pa.bool_()),
        ("baseline_cpu_ms", pa.float64()),
        ("candidate_cpu_ms", pa.float64()),
        ("baseline_wall_ms", pa.float64()),
        ("candidate_wall_ms", pa.float64()),
        ("baseline_kernel_ms", pa.float64()),
        ("candidate_kernel_ms", pa.float64()),
        ("baseline_num_kernels", pa.int64()),
        ("candidate_num_kernels", pa.int64()),
        ("is_baseline_launch_bound", pa.bool_()),
        ("is_candidate_launch_bound", pa.bool_()),
        ("floor_ms", pa.float64()),
        ("load_time_s", pa.float64()),
        ("compile_time_s", pa.float64()),
        ("first_call_s", pa.float64()),
        ("break_even_calls", pa.int64()),
        ("num_recompilations", pa.int64()),
        ("fallback_share", pa.float64()),
        ("baseline_peak_memory_bytes", pa.int64()),
        ("candidate_peak_memory_bytes", pa.int64()),
        ("duration_s", pa.float64()),
        # correctness
        ("outputs", pa.list_(OUTPUT_FIELDS)),
        ("wrong_elements", pa.list_(WRONG_FIELDS)),
        ("min_t", pa.float64()),
        ("null_t", pa.float64()),
        ("stale_t", pa.float64()),
        ("eager_t", pa.float64()),
        ("undecidable_reason", pa.string()),
        ("is_random", pa.bool_()),
        ("is_deterministic", pa.bool_()),
        ("determinism_t", pa.float64()),
        ("judged", pa.list_(JUDGED_FIELDS)),
        ("changed_state", pa.list_(pa.string())),
        ("varied_calls", pa.list_(VARIED_FIELDS)),
        ("varied_verdict", pa.string()),
        ("varied_message", pa.string()),
        ("num_varied_recompilations", pa.int64()),
        ("recompiles_each_call", pa.bool_()),
        ("warnings", pa.list_(pa.string())),
        # environment and time
        ("environment_id", pa.string()),
        ("environment", pa.string()),
        ("device_before", DEVICE_STATE_FIELDS),
        ("device_after", DEVICE_STATE_FIELDS),
        ("settings_hash", pa.string()),
        ("settings", pa.string()),
        ("started_at", pa.string()),
    ],
    metadata=table_metadata("runs"),
)
"""Columns of the `runs` table, which `run_descriptions` describes one by one.

A verdict says nothing about a compiler at t >= `stale_t`, where an output stored from other inputs
passes, nor below `eager_t`, where eager itself differs from the oracle. If there are at least ten
pairs without preemption (`num_calm_pairs`), only they are evaluated. If timed calls change state
outside the graph (`changed_state`), the run is repeated, and the state is restored after each call.
"""

LATER_COLUMNS = frozenset(
    {
        "subtask", "sample_digest", "dataset", "compiler_source", "judged", "upstream_speedup",
        "upstream_min_t", "upstream_passing_t", "timed_in", "paired_speedup",
        "baseline_preemptions",
        "candidate_preemptions", "num_calm_pairs", "is_noisy", "load", "other_cpu_share",
        "stale_t", "undecidable_reason", "is_random", "changed_state",
        "steal_share", "baseline_cpu_ms", "candidate_cpu_ms", "eager_t", "varied_calls",
        "varied_verdict", "varied_message", "num_varied_recompilations", "recompiles_each_call",
        "compile_cache", "wrong_elements",
    }
)  # fmt: skip
"""Columns that files of this format version may lack; they are read as null."""


def empty_run() -> dict[str, Any]:
    """Return a row to be filled, with every column null except the format version."""
    row: dict[str, Any] = dict.fromkeys(RUNS_SCHEMA.names)
    row["schema_version"] = SCHEMA_VERSION
    return row
