"""Eager in a process without a candidate: its outputs, its times and its outputs in float64."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ...frameworks import module
from ...frameworks.outputs import append_described
from ...isolation import Reporter, describe_error
from ...schema.sample_files import read_sample
from ...timing.alone import measure_alone
from ..draw_plan import FURTHER_DRAWS
from ..handover import (
    AGAIN,
    DRAWS,
    FIRST,
    JUDGED,
    ORACLE,
    judged_message,
)
from ..worker_job import WorkerJob
from .arms import Arm, Workload
from .between import Between
from .draws import hand_over_draws
from .setup import evictor_for, load_workload, make_clock
from .sorted_keys import hand_over_keys
from .turnstile import Turnstile


def run_eager_alone(job: WorkerJob, reporter: Reporter, directory: Path) -> None:
    """Run eager alone: compute its outputs on the input sets, time it, then run it in float64."""
    workload = load_workload(job, directory)
    runtime = workload.runtime
    turnstile = Turnstile(job, reporter)
    turnstile.enter("baseline")
    workload.note_writes()
    workload.is_fresh = job.is_fresh
    arm = Arm(workload, workload.module)
    for name in (FIRST, AGAIN) if job.is_first else ():
        arm.prepare(0)
        arm()
        reporter.send({f"outputs {name}": runtime.write_outputs(arm.results(), directory / name)})
    with (directory / JUDGED).open("wb") as file:
        for number, call in enumerate(job.judged):
            arm.prepare(call.set_index)
            arm()
            excerpt = runtime.excerpt(arm.results(), call.start)
            reporter.send({judged_message(number): append_described(excerpt, file)})
    if job.draws is not None:
        calls = dataclasses.replace(job.draws, count=job.draws.count + FURTHER_DRAWS)
        hand_over_draws(arm, runtime, reporter, directory / DRAWS, calls, DRAWS)
    hand_over_keys(
        job,
        read_sample(directory),
        reporter,
        directory,
        (0, *(call.set_index for call in job.judged)),
        is_fresh=job.is_fresh,
        written=(*workload.written, *workload.state),
    )
    if not job.is_first:
        return
    turnstile.enter("run")
    _time(job, arm, workload, reporter)
    if job.settings.has_oracle:
        arm.discard()
        workload.forget_spares()
        reporter.enter("oracle")
        _run_oracle(workload, reporter, directory)


def _time(job: WorkerJob, arm: Arm, workload: Workload, reporter: Reporter) -> None:
    clock = make_clock(job, workload.runtime)
    between = Between(job, arm, workload, clock, reporter, is_called=True)
    alone = measure_alone(
        arm,
        settings=job.settings.timing,
        clock=clock,
        before_each=between.before_each,
        after_each=between.after_each,
        evict_caches=evictor_for(job, workload.runtime),
        num_calls=job.settings.alone_calls,
    )
    reporter.send(
        {
            "baseline_alone_ms": alone.times_ms,
            "baseline_alone_preemptions": alone.preemptions,
            "machine": alone.machine,
        }
    )


def _run_oracle(workload: Workload, reporter: Reporter, directory: Path) -> None:
    """Hand over the outputs of the first call in float64; a graph without them is not a failure."""
    sample = read_sample(directory)
    try:
        outputs = module(sample.framework, "oracle").float64_outputs(workload, sample)
        if outputs is not None:
            described = workload.runtime.write_outputs(outputs, directory / ORACLE)
            reporter.send({f"outputs {ORACLE}": described})
    except Exception as error:  # operators without float64 may raise any type
        reporter.send({"oracle_problem": describe_error(error)})
