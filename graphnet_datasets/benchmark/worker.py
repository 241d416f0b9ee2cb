"""What happens in the process of one sample: the only place where a candidate's code runs.

Imported once by the fork server, then run in a fresh fork for each job. The clock is bound when
this module is imported, before any candidate can be. The candidate is imported at the start of the
compile phase: what fails before is the sample's or the harness's doing.

The outputs of eager that a candidate is judged by are not here, nor anywhere while it runs: another
process makes them, from the same seeds, after this one and all that it started are gone.
"""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..compilers import make_compiler
from ..compilers.base import Compiler
from ..isolation import Reporter, describe_error, peak_memory_bytes, reset_peak_memory
from ..schema import Reason, sample_from_row
from .arms import Arm, Workload
from .caches import make_evictor
from .clocks import Clock, CudaEventClock, WallClock
from .handover import (
    AGAIN,
    FIRST,
    MAX_SET,
    MAX_TIMED,
    ORACLE,
    SAMPLE_FILE,
    read_row,
    set_file,
    timed_file,
)
from .outputs import OutputTypeError
from .roofline import measure_peak_rates
from .runtimes import Runtime, make_runtime
from .timing import ArmFailedError, TimingSettings, measure_alone, measure_pairs

SLOW_CALL_MS = 1000.0
"""Of calls that take longer than this, one is judged besides the first: eager has to repeat it."""
KEPT_BYTES = 256 * 2**20
"""Outputs of timed calls that are held until the end; where they take more, those of one call."""
_now_s = WallClock().now_s
_CPU_CLOCK = WallClock().name


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Do one job: look at a compiler or the device, run a candidate, or make the reference."""
    kind = payload["kind"]
    if kind == "compiler":
        look_at_compiler(payload, reporter)
    elif kind == "peaks":
        reporter.send(measure_peak_rates(payload["device"], payload["num_threads"]))
    elif kind == "candidate":
        run_candidate(payload, reporter, directory)
    else:
        run_reference(payload, reporter, directory)


def look_at_compiler(payload: Mapping[str, Any], reporter: Reporter) -> None:
    """Report whether the compiler can be had with these options, and its version."""
    compiler = make_compiler(payload["compiler"], payload["framework"], payload["options"])
    device_type = payload["device"].partition(":")[0]
    reporter.send(
        {
            "version": str(compiler.version()),
            "options": compiler.options,
            "is_for_device": device_type in compiler.devices,
        }
    )


def run_candidate(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Load, run eager, compile, run and time the candidate, and hand its outputs over."""
    started_s = _now_s()
    resident_bytes = peak_memory_bytes()
    workload = _load(payload, directory)
    runtime = workload.runtime
    reporter.send({"load_time_s": _now_s() - started_s})

    reporter.enter("baseline")
    baseline = Arm(workload, workload.module, is_poisoned=True)
    workload.note_writes()
    # Bound before the candidate is imported, which could replace what they are made of.
    clock = _make_clock(payload["device"])
    evict_caches = _make_evictor(payload)
    alone_ms, baseline_peak = _time_eager_first(
        baseline, runtime, resident_bytes, clock, evict_caches
    )
    reporter.send({"baseline_first_ms": alone_ms, "baseline_peak_memory_bytes": baseline_peak})

    reporter.enter("compile")
    compiler = make_compiler(payload["compiler"], payload["framework"], payload["options"])
    os.environ.update(compiler.cache_environment(directory / "cache"))
    arguments = workload.arguments(0)
    runtime.seed(workload.seed)
    reset_peak_memory()
    compile_started_s = _now_s()
    compiled = compiler.compile(runtime.copy_module(workload.module), arguments)
    compile_time_s = _now_s() - compile_started_s - compiler.excluded_time_s
    del arguments
    reporter.send({"compile_time_s": compile_time_s, "warnings": list(compiler.warnings)})

    reporter.enter("run")
    candidate = Arm(workload, compiled, is_poisoned=False)
    timed = _Timed(baseline, candidate, runtime, reporter, directory, len(workload.sets))
    try:
        times = measure_pairs(
            baseline,
            candidate,
            settings=TimingSettings(**payload["timing"]),
            clock=_waiting_for(compiler, clock),
            before_each=timed.before_each,
            after_each=timed.after_each,
            num_compilations=compiler.num_compilations,
            evict_caches=evict_caches,
        )
        timed.hand_over_timed(times.candidate_ms)
    except ArmFailedError as failure:
        cause = failure.__cause__ or failure
        if failure.arm == "candidate" and isinstance(cause, Exception):
            reporter.send({"failed_phase": compiler.phase_of(cause)})
        raise cause from None
    except _OutputsRefusedError:
        return  # reported where it was found
    if changed := workload.find_changed_weight():
        timed.refuse(Reason.MUTATION, f"The candidate wrote to the weight `{changed}`.")
        return
    reporter.send(
        {
            "baseline_latency_ms": times.baseline_ms,
            "candidate_latency_ms": times.candidate_ms,
            "is_candidate_first": times.is_candidate_first,
            "clock": times.clock,
            "stopped_by": times.stopped_by,
            "first_call_s": times.first_call_s,
            "num_recompilations": times.num_recompilations,
            "candidate_peak_memory_bytes": timed.candidate_peak_bytes(resident_bytes),
            "warnings": [*compiler.warnings, *times.warnings],
            "is_timed": True,
        }
    )


def run_reference(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Run eager alone: its outputs on the sets of inputs, its times, and in float64 at last."""
    workload = _load(payload, directory)
    reporter.enter("baseline")
    workload.note_writes()
    arm = Arm(workload, workload.module, is_poisoned=True)
    for set_index, name in ((0, FIRST), (0, AGAIN), *((i, set_file(i)) for i in payload["sets"])):
        arm.prepare(set_index)
        arm()
        described = workload.runtime.write_outputs(arm.results(), directory / name)
        reporter.send({f"outputs {name}": described})
    reporter.enter("run")
    turn = iter(range(10**9))
    alone = measure_alone(
        arm,
        settings=TimingSettings(**payload["timing"]),
        clock=_make_clock(payload["device"]),
        before_each=lambda *_: arm.prepare(next(turn) % payload["num_input_sets"]),
        evict_caches=_make_evictor(payload),
        num_calls=payload["alone_calls"],
    )
    reporter.send({"baseline_alone_ms": alone})
    if payload["has_oracle"] and payload["framework"] == "torch":
        arm.discard()
        reporter.enter("oracle")
        _run_oracle(workload, reporter, directory)


def _run_oracle(workload: Workload, reporter: Reporter, directory: Path) -> None:
    """Hand over the outputs of the first call in float64; that there are none is no failure."""
    from .torch_oracle import float64_outputs

    sample = sample_from_row(read_row(directory / SAMPLE_FILE))
    try:
        outputs = float64_outputs(workload, sample)
        if outputs is not None:
            described = workload.runtime.write_outputs(outputs, directory / ORACLE)
            reporter.send({f"outputs {ORACLE}": described})
    except Exception as error:  # whatever an operator raises that has no float64
        reporter.send({"oracle_problem": describe_error(error)})


class _OutputsRefusedError(Exception):
    """The outputs cannot be judged; why has been reported."""


class _Timed:
    """What happens around the timed calls: inputs before, a look at some outputs after."""

    def __init__(
        self,
        baseline: Arm,
        candidate: Arm,
        runtime: Runtime,
        reporter: Reporter,
        directory: Path,
        num_sets: int,
    ) -> None:
        self._arms = {"baseline": baseline, "candidate": candidate}
        self._runtime, self._reporter = runtime, reporter
        self._directory, self._num_sets = directory, num_sets
        # Not seeded: which timed call is judged cannot be foreseen.
        self._draw = random.Random(os.urandom(16)).random  # noqa: S311
        self._num_calls = 0
        self._num_kept = MAX_TIMED
        self._peak_bytes: int | None = None
        self._kept: list[tuple[int, Any]] = []
        self._pair, self._set_index = -1, 0

    def before_each(self, arm: str, pair: int) -> None:
        """Lay out the inputs: set 0 for the first call, then in turn; new ones for each pair.

        Both arms of a pair take the same values, which nothing could have known before.
        """
        if arm == "candidate":
            self._num_calls += 1
        if pair < 0:
            self._set_index = (self._num_calls - 1) % self._num_sets
        elif pair != self._pair:
            self._pair = pair
            self._set_index = self._num_sets + int(self._draw() * (MAX_SET - self._num_sets))
        self._arms[arm].prepare(self._set_index)
        if arm == "candidate" and self._num_calls == 2:
            reset_peak_memory()
            self._runtime.reset_peak_memory()

    def after_each(self, arm: str, pair: int, result: Any) -> None:
        """Hand over what the first call gave; keep what some of the timed calls gave."""
        del result
        if arm != "candidate":
            return
        candidate = self._arms[arm]
        if self._num_calls == 1:
            if self._hand_over(0, candidate.results(), FIRST) > KEPT_BYTES / MAX_TIMED:
                self._num_kept = 1
            self._check_inputs(candidate)
        elif self._num_calls == 2:
            self._peak_bytes = self._runtime.peak_memory_bytes() or peak_memory_bytes()
        if pair < 0:
            return
        # Each timed call is kept with the same probability: a reservoir.
        place = len(self._kept)
        if place == self._num_kept:
            place = int(self._draw() * (pair + 1))
        if place < self._num_kept:
            self._check_inputs(candidate)
            outputs = self._runtime.clone_outputs(candidate.results())
            self._kept[place : place + 1] = [(self._set_index, outputs)]

    def _check_inputs(self, candidate: Arm) -> None:
        if name := candidate.find_foreign_write():
            self.refuse(Reason.MUTATION, f"The candidate wrote to the input `{name}`.")
            raise _OutputsRefusedError

    def hand_over_timed(self, candidate_ms: Sequence[float]) -> None:
        """Hand over the outputs of the timed calls that were kept; of slow ones, of one."""
        is_slow = statistics.median(candidate_ms) > SLOW_CALL_MS
        for number, (set_index, outputs) in enumerate(self._kept[: 1 if is_slow else None]):
            self._hand_over(set_index, outputs, timed_file(number))

    def refuse(self, reason: Reason, message: str) -> None:
        """Report that the outputs are not what eager gives, whatever their values."""
        self._reporter.send({"refused": {"reason": str(reason), "message": message}})

    def candidate_peak_bytes(self, resident_bytes: int) -> int | None:
        """Return the peak memory of the second call, without what was there before the sample."""
        if self._peak_bytes is None or self._runtime.peak_memory_bytes() is not None:
            return self._peak_bytes
        return max(self._peak_bytes - resident_bytes, 0)

    def _hand_over(self, set_index: int, outputs: Any, name: str) -> int:
        """Write outputs down for the parent and return how many bytes they take."""
        path = self._directory / name
        try:
            described = self._runtime.write_outputs(outputs, path)
        except OutputTypeError as error:
            self.refuse(Reason.TYPE, str(error))
            raise _OutputsRefusedError from error
        self._reporter.send({f"outputs {name}": described, f"set {name}": set_index})
        return path.stat().st_size


def _load(payload: Mapping[str, Any], directory: Path) -> Workload:
    sample = sample_from_row(read_row(directory / SAMPLE_FILE))
    runtime = make_runtime(sample.framework, payload["device"], payload["num_threads"])
    return Workload(
        runtime,
        sample,
        device=payload["device"],
        weights=payload["weights"],
        mode=payload["input_mode"],
        seed=payload["seed"],
        num_sets=payload["num_input_sets"],
        memory_limit_bytes=payload["memory_limit_bytes"],
    )


def _time_eager_first(
    baseline: Arm,
    runtime: Runtime,
    resident_bytes: int,
    clock: Clock,
    evict_caches: Callable[[], None] | None,
) -> tuple[list[float], int]:
    """Time a few calls of eager before there is a candidate, and take its peak memory."""
    times: list[float] = []
    baseline.prepare(0)
    reset_peak_memory()
    runtime.reset_peak_memory()
    baseline()
    peak = runtime.peak_memory_bytes()
    if peak is None:
        peak = max(peak_memory_bytes() - resident_bytes, 0)
    started_s = _now_s()
    while len(times) < 5 and (not times or _now_s() - started_s < 1.0):
        baseline.prepare(0)
        if evict_caches is not None:
            evict_caches()
        times.append(clock.measure(baseline)[1])
    baseline.discard()
    return times, peak


def _make_clock(device: str) -> Clock:
    return CudaEventClock(device) if device.startswith("cuda") else WallClock()


def _waiting_for(compiler: Compiler, clock: Clock) -> Clock:
    """Return the clock, or on a CPU one that waits for the compiler's own runtime as well."""
    has_own_wait = type(compiler).synchronize is not Compiler.synchronize
    return WallClock(compiler.synchronize) if has_own_wait and clock.name == _CPU_CLOCK else clock


def _make_evictor(payload: Mapping[str, Any]) -> Callable[[], None] | None:
    return make_evictor(payload["device"]) if payload["cache_mode"] == "cold" else None
