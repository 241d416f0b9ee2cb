"""Common setup of a worker's jobs: the workload, the clock and first timings of eager."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from ...compilers.base import Compiler
from ...frameworks.protocols import Clock, Reading, Runtime
from ...frameworks.runtime import make_runtime
from ...isolation import Reporter, peak_memory_bytes, reset_peak_memory
from ...sample import Sample
from ...schema.sample_files import read_sample
from ...timing.caches import make_evictor
from ...timing.clocks import WallClock
from ..handover import LAYOUT
from ..worker_job import WorkerJob
from .arms import Arm, Workload

now_s = WallClock().now_s
_CPU_CLOCK = WallClock().name


def load_workload(
    job: WorkerJob,
    directory: Path,
    sample: Sample | None = None,
    make_workload: Callable[..., Workload] = Workload,
) -> Workload:
    """Load the sample of a job as a workload; `sample` replaces the stored one."""
    if sample is None:
        sample = read_sample(directory)
    runtime = make_runtime(sample.framework, job.device, job.threads)
    is_alone = job.kind == "eager_alone" and not job.is_first
    return make_workload(
        runtime,
        sample,
        device=job.device,
        weights=job.settings.weights,
        mode=job.settings.input_mode,
        seed=job.settings.seed,
        memory_limit_bytes=job.settings.memory_limit_bytes,
        trust_remote_code=job.settings.trust_remote_code,
        has_second=not is_alone and job.varying is None,
        is_known_to_fit=job.is_known_to_fit,
    )


def time_eager_first(
    baseline: Arm,
    runtime: Runtime,
    resident_bytes: int,
    clock: Clock,
    evict_caches: Callable[[], None] | None,
    reporter: Reporter,
    lay_out: Callable[[], object] | None = None,
    copied_bytes: int = 0,
) -> None:
    """Time a few calls of eager before the candidate is loaded; report them and the peak memory.

    `copied_bytes` is subtracted from the peak, since it does not belong to eager. The calls are
    also stamped. No foreign code has run yet, so the stamps show the cost of a stamp, and of
    preparing inputs with `lay_out` (default: those of set 0).
    """
    first: list[Reading] = []
    if lay_out is None:
        lay_out = functools.partial(baseline.prepare, 0)
    stamps = reporter.stamps
    baseline.prepare(0)
    reset_peak_memory()
    runtime.reset_peak_memory()
    baseline()
    peak = runtime.peak_memory_bytes()
    if peak is None:
        peak = peak_memory_bytes() - resident_bytes
    started_s = now_s()
    while len(first) < 9 and (not first or now_s() - started_s < 0.5):
        baseline.discard()
        if stamps is not None:
            stamps.send(stamps.encode(f"{LAYOUT}first {len(first)}"))
        lay_out()
        if evict_caches is not None:
            evict_caches()
        if stamps is None:
            first.append(clock.measure(baseline))
            continue
        began, ended = (stamps.encode(f"{sign}first {len(first)}") for sign in "+-")
        stamps.send(began)
        first.append(clock.measure(baseline))
        stamps.send(ended)
    baseline.discard()
    reporter.send(
        {
            "baseline_first_ms": [reading.elapsed_ms for reading in first],
            "baseline_first_wall_ms": [reading.wall_ms for reading in first],
            "baseline_peak_memory_bytes": max(peak - copied_bytes, 0),
        }
    )


def make_clock(job: WorkerJob, runtime: Runtime) -> Clock:
    """Return the clock of the job's device."""
    is_cpu = not job.device.startswith("cuda")
    return runtime.make_clock() or WallClock(None if is_cpu else runtime.synchronize)


def waiting_for(compiler: Compiler, clock: Clock) -> Clock:
    """Return the clock; on a CPU, it also waits for the compiler's own runtime."""
    has_own_wait = type(compiler).synchronize is not Compiler.synchronize
    return WallClock(compiler.synchronize) if has_own_wait and clock.name == _CPU_CLOCK else clock


def evictor_for(job: WorkerJob, runtime: Runtime) -> Callable[[], None] | None:
    """Return a function that evicts the caches before each call, or None for warm caches."""
    if job.settings.cache_mode != "cold":
        return None
    return runtime.make_evictor() or make_evictor()
