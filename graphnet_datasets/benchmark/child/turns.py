"""Statistics of the timed calls, for pairs in one process and for turns of two processes."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from ...isolation import Reporter, peak_memory_bytes
from ...timing.pairs import PairedTimes
from ...timing.turns import Turn, TurnTimes, measure_turns
from ..worker_job import Turns, WorkerJob
from .arms import Arm
from .between import Between
from .setup import evictor_for, load_workload, make_clock, time_eager_first


def figures_of_pairs(times: PairedTimes) -> dict[str, Any]:
    """Return the reported statistics of interleaved pairs."""
    return {
        "baseline_latency_ms": times.baseline_ms,
        "candidate_latency_ms": times.candidate_ms,
        "is_candidate_first": times.is_candidate_first,
        "baseline_preemptions": times.baseline_preemptions,
        "candidate_preemptions": times.candidate_preemptions,
        "machine": times.machine,
        "baseline_cpu_ms": statistics.median(times.baseline_cpu_ms),
        "candidate_cpu_ms": statistics.median(times.candidate_cpu_ms),
        "baseline_wall_ms": statistics.median(times.baseline_wall_ms),
        "candidate_wall_ms": statistics.median(times.candidate_wall_ms),
        "stopped_by": times.stopped_by,
        "first_call_s": times.first_call_s,
        "num_recompilations": times.num_recompilations,
        "timing_warnings": times.warnings,
    }


def wait_for_eager(turns: Turns) -> None:
    """Wait until eager in the other process is ready to be timed.

    Two processes that use all threads at once take many times as long as one after the other: each
    waits for threads whose processors the other has taken.
    """
    with Turn(turns.of_candidate, turns.of_eager) as turn:
        turn.wait()


def time_candidate_in_turns(turns: Turns, candidate: Arm, **hooks: Any) -> dict[str, Any]:
    """Time the candidate while another process times eager; return the reported statistics."""
    with Turn(turns.of_candidate, turns.of_eager) as turn:
        times = measure_turns("candidate", candidate, turn, **hooks)
    return {
        **_figures("candidate", times),
        "first_call_s": times.first_call_s,
        "timing_warnings": [],
    }


def run_eager_in_turns(job: WorkerJob, reporter: Reporter, directory: Path) -> None:
    """Time eager in a process without the candidate, alternating with the candidate's process."""
    resident_bytes = peak_memory_bytes()
    workload = load_workload(job, directory)
    assert job.turns is not None  # noqa: S101 - jobs of this kind always have turns
    reporter.enter("baseline")
    workload.note_writes()
    workload.is_fresh = job.turns.is_fresh
    arm = Arm(workload, workload.module)
    clock, evict_caches = make_clock(job, workload.runtime), evictor_for(job, workload.runtime)
    time_eager_first(
        *(arm, workload.runtime, resident_bytes, clock, evict_caches, reporter),
        copied_bytes=workload.copied_bytes,
    )
    with Turn(job.turns.of_eager, job.turns.of_candidate) as turn:
        turn.give()
        reporter.enter("compile")  # the other process compiles during this phase
        turn.wait()
        reporter.enter("run")
        between = Between(job, arm, workload, clock, reporter, is_called=False)
        times = measure_turns(
            "baseline",
            arm,
            turn,
            settings=job.settings.timing,
            clock=clock,
            before_each=between.before_each,
            after_each=between.after_each,
            evict_caches=evict_caches,
            stamps=reporter.stamps,
            on_begin=between.on_begin,
        )
    reporter.send(_figures("baseline", times))


def _figures(arm: str, times: TurnTimes) -> dict[str, Any]:
    return {
        f"{arm}_turns_ms": times.times_ms,
        f"{arm}_turn_lengths": times.block_lengths,
        f"{arm}_turn_preemptions": [call_usage.num_preemptions for call_usage in times.usage],
        f"{arm}_cpu_ms": statistics.median(call_usage.cpu_ms for call_usage in times.usage),
        f"{arm}_wall_ms": statistics.median(times.wall_ms),
        "machine": times.machine,
    }
