"""Repetition of doubted runs: eager alone, then both arms in two processes that take turns."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ...isolation import Ending, Outcome
from ...schema import Status
from ..draw_plan import plan_draws
from ..judging import judging
from ..judging.eager_alone import EagerAlone
from ..judging.endings import is_harness_failure
from ..judging.turn_times import keep_pairs, take_doubt
from ..worker_job import Turns
from .collecting import read_run, read_times_alone
from .jobs import CandidateCompiler, SampleJob

if TYPE_CHECKING:
    from .sample_runner import SampleRunner

EAGER = " in turns"
"""The role of the second server, which runs eager while the first runs the candidate."""
MAX_LOOKS = 3
"""How often eager alone is timed again before two processes take turns."""
GRACE_S = 10.0
"""Seconds that eager has to end after the candidate ended successfully."""


def look_again(
    runner: SampleRunner,
    job: SampleJob,
    candidate: CandidateCompiler,
    doubted: judging.Run,
    looks: list[EagerAlone],
) -> None:
    """Time eager alone again, at most `MAX_LOOKS` times; this may settle the doubt.

    Each time takes a tenth of a run in turns. `looks` contains the results for earlier candidates
    of the sample. They are used first, since no candidate affects them. New results are appended.
    """
    for look in looks:
        doubted.look_again(look)
        if not doubted.is_doubted:
            return
    worker_job = runner.make_worker_job(candidate, "eager_alone")
    settings = dataclasses.replace(worker_job.settings, has_oracle=False)
    worker_job = dataclasses.replace(worker_job, settings=settings, is_fresh=doubted.is_fresh)
    for _ in range(MAX_LOOKS):
        with runner._attempts(job, worker_job) as (outcome, _, _):
            looks.append(read_times_alone(outcome))
        doubted.look_again(looks[-1])
        if not doubted.is_doubted:
            return


def time_again(
    runner: SampleRunner,
    job: SampleJob,
    run_id: str,
    candidate: CandidateCompiler,
    doubted: judging.Run,
    eager_alone: EagerAlone,
) -> judging.Run:
    """Return the run to record: the run in turns if it contradicts the pairs.

    The candidate is compiled, called and judged as in any run. If eager alone fails, or the worker
    is lost before it starts, the doubted run is recorded with its doubt.
    """
    runs: list[judging.Run] = []
    while not runs or (runs[-1].suspicions and len(runs) < judging.MAX_SUSPECTED):
        run = _run_in_turns(runner, job, run_id, candidate, doubted)
        if run is doubted:
            return doubted
        runs.append(run)
    run = judging.settle_suspicion(runs)
    record = run.record
    if run.has_outputs:
        again, attempts = runner._run_eager_alone(job, candidate, run, eager_alone)
        run.judge(again)
        record["num_attempts"] = max(record["num_attempts"], attempts)
    if record["status"] == Status.OK and not take_doubt(
        record, doubted.record, doubted.paired_interval
    ):
        return doubted
    return run


def _run_in_turns(
    runner: SampleRunner,
    job: SampleJob,
    run_id: str,
    candidate: CandidateCompiler,
    doubted: judging.Run,
) -> judging.Run:
    """Return a run in turns, or the doubted run with the reason if eager fails."""
    record = runner.begin_record(job, run_id, candidate)
    record["num_attempts"] = doubted.record["num_attempts"]
    with contextlib.ExitStack() as stack:
        places = [stack.enter_context(runner._directory(job, role)) for role in ("", EAGER)]
        turns = _make_turns(places[0], doubted)
        with runner.timed():
            outcome, eager, is_eager_to_blame = _run_both(
                runner, job, candidate, turns, places, restores_state=doubted.restores_state
            )
        is_timed = outcome.merged().get("is_timed") is True
        if (
            is_eager_to_blame
            or is_harness_failure(outcome)
            or (is_timed and eager.ending is not Ending.FINISHED)
        ):
            keep_pairs(doubted.record, _why(eager))
            return doubted
        run = judging.Run(record, outcome, eager, plan=plan_draws(job.row, job.sample))
        run.take_changes(doubted)
        read_run(run, outcome, places[0])
    return run


def _make_turns(directory: Path, doubted: judging.Run) -> Turns:
    pipes = {name: str(directory / name) for name in ("of_eager", "of_candidate")}
    for path in pipes.values():
        os.mkfifo(path, 0o600)
    eager_ms = tuple(doubted.record["baseline_alone_ms"] or ())
    return Turns(**pipes, eager_ms=eager_ms, is_fresh=doubted.is_fresh)


def _run_both(
    runner: SampleRunner,
    job: SampleJob,
    candidate: CandidateCompiler,
    turns: Turns,
    places: list[Path],
    *,
    restores_state: bool,
) -> tuple[Outcome, Outcome, bool]:
    """Run candidate and eager concurrently; if one fails, the other is ended too.

    Returns:
        The outcomes of both, and whether eager failed first.
    """
    own = dataclasses.replace(
        runner.make_worker_job(candidate, "candidate"),
        turns=turns,
        plan=plan_draws(job.row, job.sample),
        restores_state=restores_state,
    )
    of_eager = dataclasses.replace(own, kind="eager_in_turns")
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        running = threads.submit(runner._start, job, own, places[0])
        eager = threads.submit(runner._start, job, of_eager, places[1], EAGER)
        concurrent.futures.wait((running, eager), return_when="FIRST_COMPLETED")
        is_eager_to_blame = eager.done() and not _is_finished(eager)
        framework = job.sample.framework
        if is_eager_to_blame:
            runner._server(framework).close()
        elif running.done():  # for example with its outputs rejected
            concurrent.futures.wait([eager], timeout=GRACE_S if _is_finished(running) else 0)
            if not eager.done():
                runner._server(framework, EAGER).close()
        return running.result(), eager.result(), is_eager_to_blame


def _is_finished(job: concurrent.futures.Future[Outcome]) -> bool:
    return job.exception() is None and job.result().ending is Ending.FINISHED


def _why(outcome: Outcome) -> str:
    error = outcome.error or {"type": "", "message": ""}
    return f"eager ended with {outcome.ending} in {outcome.phase}: {error['message'][:200]}"
