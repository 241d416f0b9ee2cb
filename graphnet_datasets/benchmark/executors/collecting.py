"""Reading of the files that a worker left in its directory, before the directory is deleted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...analysis.finite import explain_not_finite
from ...analysis.orders import find_steady_orders
from ...errors import (
    CompilerError,
    CompilerUnavailableError,
    RunError,
    UnknownCompilerError,
)
from ...isolation import Ending, Outcome
from ...sample import Sample
from ..draw_plan import elements_per_draw
from ..handover import (
    AGAIN,
    DRAWS,
    FIRST,
    JUDGED,
    KEYS,
    ORACLE,
    WRITTEN,
    DrawnCalls,
    HandoverError,
    JudgedCall,
    judged_message,
    keys_message,
    read_all_outputs,
    read_drawn,
    read_draws,
    read_judged,
    read_outputs,
    read_written,
)
from ..judging import judging
from ..judging.correctness import Drawn, Output, count_not_finite
from ..judging.eager_alone import EagerAlone
from .jobs import CandidateCompiler

COMPILER_ERRORS: tuple[type[CompilerError], ...] = (
    UnknownCompilerError,
    CompilerUnavailableError,
    CompilerError,
)
"""Errors that `SampleRunner.find_candidate` raises if a compiler cannot be used."""


def read_run(run: judging.Run, outcome: Outcome, directory: Path) -> None:
    """Read the outputs of a run, if it has any; unreadable outputs fail the run."""
    if not run.has_outputs:
        return
    messages = outcome.merged()
    try:
        run.first = read_outputs(directory / FIRST, messages.get(f"outputs {FIRST}"))
        run.calls = read_judged(messages.get("judged"))
        sets = {(call.set_index, call.start is None) for call in run.calls}
        if len(sets) != len(run.calls):  # sets are drawn without replacement
            raise HandoverError("Two of the calls to be judged had the same inputs.")
        run.judged = read_judged_outputs(directory, messages, run.calls)
        run.drawn_calls = _read_drawn_calls(run, messages)
        if run.drawn_calls is not None:
            run.draws = _read_draws(directory, messages, run.drawn_calls)
    except HandoverError as error:
        run.fail_protocol(str(error))


def read_judged_outputs(
    directory: Path, messages: Mapping[str, Any], calls: Sequence[JudgedCall]
) -> list[list[Output]]:
    """Return the outputs of each judged call.

    Raises:
        HandoverError: the files do not match the messages.
    """
    if not calls:
        return []
    described = [messages.get(judged_message(number)) for number in range(len(calls))]
    return read_all_outputs(directory / JUDGED, described, [call.start for call in calls])


def _read_drawn_calls(run: judging.Run, messages: Mapping[str, Any]) -> DrawnCalls | None:
    """Return the repeated calls of a run, or None unless they are planned.

    Raises:
        HandoverError: the worker's calls differ from the plan.
    """
    sizes = [output.elements.size for output in run.first or []]
    count = 0 if run.plan is None else run.plan.count(sizes)
    if count == 0:
        return None
    calls = read_drawn(messages.get(DRAWS))
    if (calls.count, calls.most) != (count, elements_per_draw(count)):
        raise HandoverError(
            f"The worker reported {calls.count} repeated calls, but {count} were planned."
        )
    return calls


def _read_draws(
    directory: Path, messages: Mapping[str, Any], calls: DrawnCalls
) -> list[Drawn] | None:
    """Return the outputs of repeated calls, or None if their shapes differ between calls."""
    described = messages[DRAWS].get("described")
    return None if described is None else read_draws(directory / DRAWS, described, calls)


def read_eager_alone(
    outcome: Outcome,
    directory: Path,
    run: judging.Run,
    earlier: EagerAlone | None,
    sample: Sample,
) -> EagerAlone:
    """Return the results of eager alone for a run; `earlier` provides all but the judged calls."""
    messages = outcome.merged()
    eager_alone = read_times_alone(outcome)
    if earlier is not None:
        eager_alone = dataclasses.replace(
            earlier, outcome=outcome, earlier=earlier, handover_problem=""
        )
    if eager_alone.problem is not None:
        return eager_alone
    try:
        if earlier is None:
            eager_alone.first, eager_alone.again = (
                read_outputs(directory / name, messages.get(f"outputs {name}"))
                for name in (FIRST, AGAIN)
            )
            text, is_meant = explain_not_finite(count_not_finite(eager_alone.first), sample)
            eager_alone.not_finite = "" if is_meant else text
        eager_alone.judged = read_judged_outputs(directory, messages, run.calls)
        eager_alone.draws = None
        if run.drawn_calls is not None and DRAWS in messages:
            calls = read_drawn(messages[DRAWS])
            eager_alone.draws = _read_draws(directory, messages, calls)
        if (orders := find_steady_orders(sample)) is not None:
            eager_alone.orders = orders.with_written(read_written(messages.get(WRITTEN)))
        eager_alone.keys = read_keys(directory, messages)
        if f"outputs {ORACLE}" in messages:
            described = messages[f"outputs {ORACLE}"]
            eager_alone.oracle = read_outputs(directory / ORACLE, described)
    except HandoverError as error:
        eager_alone.handover_problem = str(error)
    return eager_alone


def read_keys(directory: Path, messages: Mapping[str, Any]) -> list[list[Output]]:
    """Return the keys that the graph sorts, for all calls whose keys were stored."""
    described = []
    while (message := messages.get(keys_message(len(described)))) is not None:
        described.append(message)
    if not described:
        return []
    return read_all_outputs(directory / KEYS, described, [None] * len(described))


def read_times_alone(outcome: Outcome) -> EagerAlone:
    """Return the outcome of eager alone with its times, without its outputs."""
    messages = outcome.merged()
    return EagerAlone(
        outcome,
        messages.get("baseline_alone_ms"),
        messages.get("baseline_alone_preemptions"),
        messages.get("machine"),
    )


def read_candidate(
    outcome: Outcome, requested: CandidateCompiler, device: str
) -> CandidateCompiler:
    """Return the compiler that a worker has inspected, with all its options.

    Raises:
        CompilerError: the compiler or option does not exist, or the compiler cannot run here.
        RunError: the device cannot be used.
    """
    compiler = requested.compiler
    if outcome.ending is not Ending.FINISHED:
        error = outcome.error or {"type": "", "message": ""}
        kind = error["type"].rpartition(".")[2]
        for error_class in COMPILER_ERRORS:
            if kind == error_class.__name__:
                raise error_class(error["message"])
        reason = f"{error['type']}: {error['message']}" if error["type"] else str(outcome.ending)
        raise CompilerError(
            f"The compiler `{compiler}` cannot be loaded: {reason.rstrip('.')}. Correct its file "
            "or its package."
        )
    messages = outcome.merged()
    if messages.get("device_problem"):
        raise RunError(f"The device `{device}` cannot be used: {messages['device_problem']}.")
    if messages.get("is_for_device") is not True:
        raise CompilerUnavailableError(
            f"The compiler `{compiler}` does not produce code for the device `{device}`."
        )
    return CandidateCompiler(
        compiler,
        requested.framework,
        dict(messages["options"]),
        str(messages["version"]),
        str(messages["source"]),
    )
