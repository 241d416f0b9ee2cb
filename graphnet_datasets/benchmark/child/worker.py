"""Jobs in the process of one sample: the only place where a candidate's code runs.

The fork server imports this module once and runs it in a new fork for each job. The clock is bound
at import, before any candidate is loaded. The candidate is imported at the start of the compile
phase; earlier failures are attributed to the sample or the harness.

The eager outputs that judge a candidate are not available in this process. Another process computes
them from the same seeds after this process and its children have ended.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...compilers import find_entry, list_entries, make_compiler, source_hash
from ...compilers.registry import is_reusable
from ...compilers.replacement import is_replacement, note_own_lines
from ...errors import CompilerError
from ...frameworks import FRAMEWORK_VARIABLE, module, offers
from ...frameworks.runtime import find_device_problem
from ...inputs import prepare_blocks
from ...isolation import Reporter, describe_error, peak_memory_bytes, reset_peak_memory
from ...schema import Reason
from ...schema.runs import CARRIED, COLD
from ...timing.calls import ArmFailedError
from ...timing.pairs import PairedTimes, measure_pairs
from ..handover import COMPILERS_VARIABLE, OPTIONS_VARIABLE
from ..judging.roofline import measure_peak_rates
from ..worker_job import WorkerJob
from .arms import Arm, WatchedArm
from .around_calls import draw_set
from .device_state import read_device_state
from .draws import complete_plan
from .eager_alone import run_eager_alone
from .harness_snapshot import HarnessSnapshot, prepare_snapshots
from .outside_state import ALL_KINDS, OutsideState, report_state
from .setup import evictor_for, load_workload, make_clock, now_s, time_eager_first, waiting_for
from .timed_calls import OutputsRefusedError, TimedCalls
from .turns import (
    figures_of_pairs,
    run_eager_in_turns,
    time_candidate_in_turns,
    wait_for_eager,
)
from .turnstile import Turnstile
from .varied_calls import run_candidate_varied, run_eager_varied

SLOW_PROFILE_MS = 100.0
"""For calls longer than this, the profiler records one call instead of three."""


class NothingVariesError(Exception):
    """The outputs of eager do not depend on the inputs."""


def prepare() -> tuple[str, ...]:
    """Import the framework and the requested compilers of this library.

    Returns additional modules that some jobs import.
    """
    framework = os.environ[FRAMEWORK_VARIABLE]
    # Before any module of this library with a global `torch`: pickled names of torch's objects, and
    # with them the keys of TorchInductor's caches, contain the first such module.
    if framework == "torch":
        import torch  # noqa: F401
    wanted = {name for name in os.environ.get(COMPILERS_VARIABLE, "").split(",") if name}
    options = {
        entry.name: entry
        for entry in list_entries()
        if entry.origin == "built in" and entry.framework == framework
    }
    is_all_known = bool(wanted) and wanted <= options.keys()
    compilers = [options[name].load() for name in sorted(wanted & options.keys() or options.keys())]
    seldom = module(framework, "runtime").import_all(
        # The requirements of a third-party compiler are unknown before it is loaded.
        with_compiler=not is_all_known or any(cls.uses_framework_compiler for cls in compilers)
    )
    for compiler in compilers:
        if compiler.name in wanted and compiler.is_available()[0]:
            with contextlib.suppress(CompilerError):  # the inspecting job reports it
                compiler(json.loads(os.environ.get(OPTIONS_VARIABLE) or "{}"))
                compiler.prepare()
    prepare_blocks()
    prepare_snapshots()
    return seldom


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Run one job: inspect a compiler or the device, run a candidate, or run eager alone."""
    job = WorkerJob.from_payload(payload)
    try:
        _work(job, reporter, directory)
    except Exception as error:
        if is_replacement(job.compiler):
            note_own_lines(error, job.compiler)
        raise


def _work(job: WorkerJob, reporter: Reporter, directory: Path) -> None:
    match job.kind:
        case "compiler":
            describe_compiler(job, reporter)
        case "peaks":
            reporter.send(measure_peak_rates(job.device, job.threads))
        case "candidate":
            run_candidate(job, reporter, directory)
        case "eager_alone":
            run_eager_alone(job, reporter, directory)
        case "eager_in_turns":
            run_eager_in_turns(job, reporter, directory)
        case "eager_varied":
            run_eager_varied(job, reporter, directory)
        case "candidate_varied":
            run_candidate_varied(job, reporter, directory)


def describe_compiler(job: WorkerJob, reporter: Reporter) -> None:
    """Report whether the compiler is available with these options, its version and its source."""
    compiler = make_compiler(job.compiler, job.framework, job.options)
    entry = find_entry(job.compiler, job.framework)
    device_type = job.device.partition(":")[0]
    reporter.send(
        {
            "version": str(compiler.version()),
            # Compilers of this library are identified by its version.
            "source": "" if entry.origin == "built in" else source_hash(entry.reference),
            "options": compiler.options,
            "is_reusable": is_reusable(type(compiler)),
            "is_for_device": device_type in compiler.devices,
            "device_problem": find_device_problem(job.framework, job.device),
        }
    )


def run_candidate(job: WorkerJob, reporter: Reporter, directory: Path) -> None:
    """Load the sample, run eager, compile, run and time the candidate, and report the outputs."""
    if job.turns is not None:
        wait_for_eager(job.turns)
    started_s = now_s()
    resident_bytes = peak_memory_bytes()
    workload = load_workload(job, directory)
    runtime = workload.runtime
    loaded_s = now_s()
    reporter.send({"load_time_s": loaded_s - started_s, "load_span_s": [started_s, loaded_s]})

    turnstile = Turnstile(job, reporter)
    turnstile.enter("baseline")
    workload.note_writes()
    plan = complete_plan(job.plan, workload, reporter)
    if not workload.note_variation():
        raise NothingVariesError(
            "Eager returns the same outputs for all inputs, so a stored output would be right, "
            "and times would be meaningless."
        )
    baseline = Arm(workload, workload.module)
    # Bound before the candidate is imported, since a candidate could replace their parts.
    clock = make_clock(job, runtime)
    evict_caches = evictor_for(job, workload.runtime)
    num_sets = job.settings.num_input_sets
    snapshot = HarnessSnapshot()
    snapshot.hold(workload, baseline, runtime, clock, reporter)

    def lay_out() -> None:
        """Prepare inputs as before each timed call."""
        baseline.prepare(draw_set(num_sets))
        snapshot.find_changed()

    turnstile.enter("first")
    time_eager_first(
        *(baseline, runtime, resident_bytes, clock, evict_caches, reporter),
        lay_out=lay_out,
        copied_bytes=workload.copied_bytes,
    )
    reporter.send({"is_fresh": workload.is_fresh})
    own = workload.for_candidate()
    is_on_cpu = runtime.peak_memory_bytes() is None
    other_bytes = own.copied_bytes + (resident_bytes if is_on_cpu else 0)
    watched = runtime.watch(workload.module)

    reporter.enter("compile")
    compiler = make_compiler(job.compiler, job.framework, job.options)
    compiler.trust_remote_code = job.settings.trust_remote_code
    compiler.graph_inputs = own.graph_inputs()
    compiler.graph_attributes = own.attributes
    compiler.use_caches(directory / "cache")
    is_carried = bool(job.compile_cache) and compiler.carry_caches(
        Path(job.compile_cache), directory / "cache"
    )
    arguments = own.arguments(0)
    runtime.seed(workload.seed)
    outside = OutsideState()
    reset_peak_memory()
    compile_started_s = now_s()
    compiled = compiler.compile(own.module, arguments)
    compiled_s = now_s()
    compile_time_s = compiled_s - compile_started_s - compiler.excluded_time_s
    del arguments
    reporter.send(
        {
            "compile_cache": CARRIED if is_carried else COLD,
            "compile_time_s": compile_time_s,
            "compile_span_s": [compile_started_s, compiled_s],
            "fallback_share": compiler.fallback_share,
            "compile_warnings": list(compiler.warnings),
        }
    )
    report_state(reporter, "compile", outside.undo(ALL_KINDS))

    turnstile.enter("run")
    candidate = WatchedArm(own, compiled, outside, restores=job.restores_state)
    clock = waiting_for(compiler, clock)
    timed = TimedCalls(
        baseline,
        candidate,
        runtime,
        reporter,
        directory,
        num_sets,
        job.again,
        snapshot.find_changed,
    )
    launch_mode, notes = _choose_launch(job, baseline, candidate)
    snapshot.hold(own, candidate, timed, clock)
    if reporter.stamps is not None:
        snapshot.hold(reporter.stamps)
    device_before = read_device_state(job.device)
    try:
        hooks: dict[str, Any] = {
            "settings": job.settings.timing,
            "clock": clock,
            "before_each": timed.before_each,
            "after_each": timed.after_each,
            "num_compilations": compiler.num_compilations,
            "evict_caches": evict_caches,
            "stamps": reporter.stamps,
            "on_begin": snapshot.hold,
        }
        if job.turns is None:
            times = measure_pairs(baseline, candidate, **hooks)
            figures = figures_of_pairs(times)
        else:
            times = None
            figures = time_candidate_in_turns(job.turns, candidate, **hooks)
        device_after = read_device_state(job.device)
        eager_ms = job.turns.eager_ms if job.turns is not None else ()
        timed.hand_over_timed(eager_ms if times is None else times.baseline_ms)
        if plan is not None:
            timed.hand_over_draws(plan)
    except ArmFailedError as failure:
        report_state(reporter, "calls", candidate.find_changes())
        cause = failure.__cause__ or failure
        if failure.arm == "candidate" and isinstance(cause, Exception):
            reporter.send({"failed_phase": compiler.phase_of(cause)})
        raise cause from None
    except OutputsRefusedError:
        report_state(reporter, "calls", candidate.find_changes())
        return  # already reported
    report_state(reporter, "calls", candidate.find_changes())
    if changed := own.find_changed_weight():
        timed.refuse(Reason.MUTATION, f"The candidate wrote to the weight `{changed}`.")
        return
    if changed := workload.find_changed_weight():
        timed.refuse(Reason.TAMPERING, f"The candidate wrote to eager's weight `{changed}`.")
        return
    if changed := _find_change(watched, runtime.watch(workload.module)):
        timed.refuse(Reason.TAMPERING, f"The candidate changed what eager runs on: {changed}.")
        return
    if broken := snapshot.find_replaced():
        timed.refuse_replaced(broken)
        return
    reporter.send(
        {
            **figures,
            "launch_mode": launch_mode,
            "device_before": device_before,
            "device_after": device_after,
            "clock": clock.name,
            "candidate_peak_memory_bytes": timed.candidate_peak_bytes(other_bytes),
            "warnings": [*compiler.warnings, *notes, *figures["timing_warnings"]],
            "is_timed": True,
        }
    )
    is_profiled = job.settings.has_profile and offers(job.framework, "profiling")
    if times is not None and is_profiled:
        if job.device.startswith("cuda"):  # seconds in which others may be timed
            reporter.enter("profiler")
            module(job.framework, "profiling").start_profiler(job.device)
        turnstile.enter("profile")
        _profile(job, baseline, candidate, times, reporter)


def _find_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Return the name of an item that has changed, or None."""
    names = [name for name in before if name not in after or before[name] != after[name]]
    return next(iter(names), None)


def _choose_launch(job: WorkerJob, baseline: Arm, candidate: Arm) -> tuple[str | None, list[str]]:
    """Capture both arms in CUDA graphs if requested; return the launch mode and any problems."""
    if not job.device.startswith("cuda"):
        return None, []
    if job.settings.launch_mode == "stream":
        return "stream", []
    for name, arm in (("eager", baseline), ("the candidate", candidate)):
        try:
            arm.capture()
        except Exception as error:  # operators that cannot be captured may raise any type
            baseline.release()
            candidate.release()
            reason = describe_error(error)["message"].partition("\n")[0]
            return "stream", [f"not_captured: {name} does not fit into a CUDA graph: {reason}"]
    return "cuda_graph", []


def _profile(
    job: WorkerJob,
    baseline: Arm,
    candidate: Arm,
    times: PairedTimes,
    reporter: Reporter,
) -> None:
    """Report kernels and their time for both arms; an unsuccessful profile is not a failure."""
    profile_call = module(job.framework, "profiling").profile_call
    num_calls = 1 if max(*times.baseline_ms, *times.candidate_ms) > SLOW_PROFILE_MS else 3
    for name, arm in (("baseline", baseline), ("candidate", candidate)):
        try:
            kernel_ms, num_kernels = profile_call(
                arm, lambda arm=arm: arm.prepare(0), job.device, num_calls=num_calls
            )
        except Exception as error:  # a candidate may fail on a later call
            reporter.send({"profile_problem": describe_error(error)})
            return
        reporter.send({f"{name}_kernel_ms": kernel_ms, f"{name}_num_kernels": num_kernels})
