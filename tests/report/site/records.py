"""Run records for sites: several arms, tasks and endings."""

from __future__ import annotations

from typing import Any

from ...scores.run_rows import make_run

ENVIRONMENT = '{"cpu": {"model": "test machine"}, "num_cpus": 2}'


def timed(sample_id: str, speedup: float, **columns: Any) -> dict[str, Any]:
    """Return a record of a run that ended well, with the times that make its speedup."""
    return make_run(
        sample_id,
        speedup,
        **{
            "speedup_low": speedup * 0.98,
            "speedup_high": speedup * 1.02,
            "baseline_latency_ms": [4.0, 4.2, 3.8],
            "candidate_latency_ms": [4.0 / speedup, 4.2 / speedup, 3.8 / speedup],
            "null_t": -1.0,
            "task": "cv",
            "family": sample_id,
            "dataset": "graphnet",
            "environment": ENVIRONMENT,
            "started_at": "2026-11-21T10:00:00+00:00",
            **columns,
        },
    )


def failed(sample_id: str, status: str, **columns: Any) -> dict[str, Any]:
    """Return a record of a run that failed."""
    return make_run(
        sample_id,
        **{
            "status": status,
            "task": "nlp",
            "subtask": "classification",
            "environment": ENVIRONMENT,
            **columns,
        },
    )


def two_arms() -> dict[str, list[dict[str, Any]]]:
    """Return the records of two compilers on the same samples, with every ending."""
    error = {"error_type": "LoweringError", "phase": "compile", "reason": "exception"}
    first = [
        timed("fast", 2.0, floor_ms=0.1, subtask="classification"),
        timed("even", 1.0, subtask="detection"),
        timed("slow", 0.5, family=None),
        timed("off", 3.0, min_t=2.0),
        failed("refused", "compile_failed", error_message="no kernel 12 for `a`\nmore", **error),
        failed("second refusal", "compile_failed", error_message="no kernel 7 for `b`", **error),
        failed("crashed", "run_failed", reason="timeout", phase="run"),
        failed("reshaped", "output_mismatch", reason="output_shape"),
        failed("broken", "baseline_failed", reason="exception", task="other"),
    ]
    second = [timed(name, 3.0) | {"compiler": "torchscript"} for name in ("fast", "slow", "off")]
    return {"inductor": first, "torchscript": second}
