"""Runs whose compiled graph is called with other sizes and numbers, in separate processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...analysis.orders import find_orders
from ...isolation import Ending, Outcome
from ...sample import Sample
from ..handover import (
    VARIED,
    WRITTEN,
    HandoverError,
    read_all_outputs,
    read_written,
    varied_message,
)
from ..judging.correctness import Output
from ..judging.reported import read_message
from ..judging.varied_calls import EagerVaried, judge_varied
from ..varied_calls import MAX_FROZEN, VaryingPlan
from .jobs import CandidateCompiler, SampleJob

if TYPE_CHECKING:
    from .sample_runner import SampleRunner


def vary_calls(
    runner: SampleRunner,
    job: SampleJob,
    candidate: CandidateCompiler,
    record: dict[str, Any],
    eager: EagerVaried | None,
) -> EagerVaried:
    """Compile once more, call with other sizes and numbers, and judge each call.

    Returns eager's results, which are the same for all compilers of a sample, and for all of its
    replacements.
    """
    if eager is None:
        worker_job = dataclasses.replace(
            runner.make_worker_job(candidate, "eager_varied"), varying={}
        )
        with runner._attempts(job, worker_job) as (outcome, directory, _):
            eager = _read_eager(outcome, directory, job.sample)
    if eager.plan is None or eager.problem:
        judge_varied(record, eager)
        return eager
    worker_job = dataclasses.replace(
        runner.make_worker_job(candidate, "candidate_varied"), varying=eager.plan.to_json()
    )
    with runner._attempts(job, worker_job) as (outcome, directory, _):
        try:
            outputs = _read_outputs(outcome.merged(), directory, eager.plan)
        except HandoverError as error:
            outcome.error = {"type": "HandoverError", "message": str(error)}
            outputs = {}
        if (orders := find_orders(job.sample)) is not None:
            orders = orders.with_written(eager.written)
        judge_varied(record, eager, outcome, outputs, orders)
    return eager


def _read_eager(outcome: Outcome, directory: Path, sample: Sample) -> EagerVaried:
    messages = outcome.merged()
    if outcome.ending is not Ending.FINISHED:
        error = outcome.error or {"type": str(outcome.ending), "message": ""}
        text = read_message(f"{error['type']}: {error['message']}", 300)
        return EagerVaried(problem=f"Eager fails with other sizes and numbers: {text}")
    try:
        plan = VaryingPlan.from_json(messages["plan"])
        outputs = _read_outputs(messages, directory, plan)
        frozen = {
            number: list(_read_frozen(messages, directory, plan, number).values())
            for number in range(len(plan.calls))
        }
    except (HandoverError, ValueError, TypeError, KeyError) as error:
        return EagerVaried(problem=f"Eager's outputs cannot be read: {error}")
    if messages.get("is_random") is not False:
        return EagerVaried(
            problem=f"The outputs of `{sample.id}` depend on random numbers, so single calls "
            "cannot be compared."
        )
    if len(plan.calls) == 1:
        return EagerVaried(
            problem=f"`{sample.id}` has no symbol, scalar input or literal that changes its "
            "outputs. Symbolise it first (`graphnet transform … --symbolise`)."
        )
    return EagerVaried(
        plan,
        tuple(outputs[number] for number in range(len(plan.calls))),
        frozen,
        read_written(messages.get(WRITTEN)),
    )


def _read_outputs(
    messages: Mapping[str, Any], directory: Path, plan: VaryingPlan
) -> dict[int, list[Output]]:
    keys = {number: varied_message(number) for number in range(len(plan.calls))}
    return _read(messages, directory, plan, keys)


def _read_frozen(
    messages: Mapping[str, Any], directory: Path, plan: VaryingPlan, number: int
) -> dict[int, list[Output]]:
    keys = {place: varied_message(number, place) for place in range(MAX_FROZEN)}
    return _read(messages, directory, plan, keys)


def _read(
    messages: Mapping[str, Any], directory: Path, plan: VaryingPlan, keys: Mapping[int, str]
) -> dict[int, list[Output]]:
    """Return the outputs by number, as far as the messages describe them.

    Raises:
        HandoverError: the file does not match the messages.
    """
    described_keys = {number: key for number, key in keys.items() if key in messages}
    if not described_keys:
        return {}
    described = [messages[key] for key in described_keys.values()]
    outputs = read_all_outputs(directory / VARIED, described, [plan.start] * len(described_keys))
    return dict(zip(described_keys, outputs, strict=True))
