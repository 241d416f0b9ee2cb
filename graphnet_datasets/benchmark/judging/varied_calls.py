"""Verdicts on calls of one compiled graph with other sizes and numbers."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...analysis.orders import Orders
from ...isolation import Ending, Outcome
from ...schema import ERROR_CODES, Reason, Status
from ..varied_calls import DISTINCT_T, VERDICTS, VariedCall, VaryingPlan
from .calls import Pair
from .correctness import Output, compare_outputs, find_mismatch, overall_min_t
from .endings import STATUS_OF_PHASE, reason_of
from .reported import read_message, read_number
from .ties import settle

WRONG_T = -3.0
"""A call is wrong if its outputs pass at no t up to this value and the timed run did better."""
_STALE_MARGIN = 1.0
"""A candidate repeats an answer if its t against the answer is lower than `min_t` by this much."""
_EXACT_T = -12.0
"""Substitute for -inf in differences of two values of t."""
_SEVERITY = ("stale", "wrong", "failed", "unsupported", "undecidable", "ok")
_MAX_MESSAGE_LENGTH = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class EagerVaried:
    """Eager's plan, its outputs, and its outputs with sizes frozen at earlier ones.

    `written` names the inputs that eager changes. `problem` states why a comparison is impossible,
    or "".
    """

    plan: VaryingPlan | None = None
    outputs: tuple[list[Output], ...] = ()
    frozen: Mapping[int, Sequence[list[Output]]] = dataclasses.field(default_factory=dict)
    written: Sequence[str] = ()
    problem: str = ""


def judge_varied(
    record: dict[str, Any],
    eager: EagerVaried,
    outcome: Outcome | None = None,
    outputs: Mapping[int, list[Output]] | None = None,
    orders: Orders | None = None,
) -> None:
    """Write the verdicts on the varied calls of a run into its record.

    A candidate that is wrong, stale or fails at other sizes or numbers fails the run. A call is
    undecidable if its outputs differ only where they depend on `orders` of tied elements.
    """
    plan = eager.plan
    if eager.problem or plan is None or outcome is None:
        _conclude(record, "undecidable", eager.problem)
        return
    messages = outcome.merged()
    is_ended = outcome.ending is not Ending.FINISHED
    if is_ended and "varied call 0" not in messages:
        error = outcome.error or {"type": "", "message": ""}
        is_refused = error.get("type", "").rpartition(".")[2] in (
            "CompilerError",
            "FixedInputError",
        )
        message = f"{error.get('type')}: {error.get('message')}"
        if outcome.phase in ("load", "baseline"):
            _conclude(record, "undecidable", f"Eager fails in `{outcome.phase}`: {message}")
        elif is_refused:
            _conclude(record, "unsupported", message)
        else:
            _conclude(record, "failed", message)
            _fail(record, STATUS_OF_PHASE[outcome.phase], reason_of(outcome), outcome.phase)
        return
    outputs = outputs or {}
    rows = []
    phase = "run"
    for number, call in enumerate(plan.calls):
        report = messages.get(f"varied call {number}")
        row = _describe(call)
        rows.append(row)
        if not isinstance(report, dict):
            row["verdict"] = "failed"
            row["message"] = f"The process ended before this call ({outcome.ending})."
            continue
        row["num_compilations"] = read_number(report.get("num_compilations"))
        if number in outputs:
            _compare(row, number, eager, outputs[number], record["min_t"])
            if row["verdict"] in ("wrong", "stale") and orders is not None:
                _take_orders(row, (eager.outputs[number], outputs[number]), orders)
            if isinstance(report.get("written"), str):
                row["verdict"] = "wrong"
                row["message"] = f"The candidate wrote to the input `{report['written']}`."
        else:
            is_unsupported = report.get("verdict") == "unsupported"
            row["verdict"] = "unsupported" if is_unsupported else "failed"
            error = report.get("error")
            if isinstance(error, dict):
                row["message"] = f"{error.get('type')}: {error.get('message')}"
            phase = "compile" if report.get("phase") == "compile" else phase
        row["message"] = read_message(row["message"] or "", _MAX_MESSAGE_LENGTH) or None
    _take_recompilations(record, rows)
    record["varied_calls"] = rows
    verdict = min((row["verdict"] for row in rows), key=_SEVERITY.index)
    first = next(row for row in rows if row["verdict"] == verdict)
    where = f"With sizes {first['sizes']} and numbers {first['scalars']}: "
    _conclude(record, verdict, "" if verdict == "ok" else where + (first["message"] or ""))
    if verdict == "failed":
        reason = Reason.EXCEPTION if not is_ended else reason_of(outcome)
        _fail(record, STATUS_OF_PHASE[phase], reason, phase)
    elif verdict == "stale":
        _fail(record, Status.OUTPUT_MISMATCH, Reason.STALE, "judge")
    elif verdict == "wrong":
        _take_wrong(record, rows)


def _describe(call: VariedCall) -> dict[str, Any]:
    return {
        "kind": call.kind,
        "sizes": json.dumps(dict(call.sizes), sort_keys=True),
        "scalars": json.dumps(dict(call.scalars), sort_keys=True),
        **dict.fromkeys(
            ("verdict", "min_t", "stale_t", "max_abs_error", "num_compilations", "message")
        ),
    }


def _compare(
    row: dict[str, Any],
    number: int,
    eager: EagerVaried,
    actual: list[Output],
    usual_t: float | None,
) -> None:
    """Compare the outputs of a call with eager's, and with eager's answers to other calls."""
    expected = eager.outputs[number]
    others = [
        other
        for place, other in enumerate(eager.outputs)
        if place != number and not _agree(other, expected)
    ]
    others += [other for other in eager.frozen.get(number, ()) if not _agree(other, expected)]
    row["stale_t"] = min((_distance(other, expected) for other in others), default=-math.inf)
    reason, message = find_mismatch(expected, actual)
    compared = compare_outputs(expected, actual)
    if reason is Reason.NONE:
        min_t = overall_min_t(compared)
        row["min_t"] = math.inf if min_t is None else min_t
        row["max_abs_error"] = max(output["max_abs_error"] for output in compared)
        limit = WRONG_T if usual_t is None else max(WRONG_T, usual_t + _STALE_MARGIN)
        row["verdict"] = "wrong" if row["min_t"] > limit else "ok"
        message = f"The outputs pass at no t below {row['min_t']:.3g}."
    else:
        row["verdict"] = "wrong"
    if any(repeats(actual, expected, other) for other in others):
        row["verdict"] = "stale"
        message = f"The outputs are eager's for other sizes or numbers. {message}"
    row["message"] = "" if row["verdict"] == "ok" else message


def _take_orders(row: dict[str, Any], call: Pair, orders: Orders) -> None:
    """Set the verdict on a call to undecidable if only the order of tied elements differs."""
    if find_mismatch(*call)[0] is not Reason.NONE:
        return
    settled = settle([call], orders, [None])
    if why_open := settled.take(compare_outputs(*settled.calls[0])):
        row["verdict"], row["message"] = "undecidable", why_open


def repeats(actual: Sequence[Output], expected: Sequence[Output], other: Sequence[Output]) -> bool:
    """Return whether an output is closer to eager's answer to another call than to its own."""
    if not len(actual) == len(expected) == len(other):
        return False
    for output, own, stale in zip(actual, expected, other, strict=True):
        if stale.shape != own.shape:
            if output.shape == stale.shape:
                return True
            continue
        own_t, stale_t = _distance([output], [own]), _distance([output], [stale])
        if _distance([stale], [own]) > DISTINCT_T and own_t > max(
            DISTINCT_T, max(stale_t, _EXACT_T) + _STALE_MARGIN
        ):
            return True
    return False


def _distance(actual: Sequence[Output], expected: Sequence[Output]) -> float:
    """Return the smallest t at which outputs pass; infinity if their structure differs."""
    if find_mismatch(expected, actual)[0] is not Reason.NONE:
        return math.inf
    min_t = overall_min_t(compare_outputs(expected, actual))
    return math.inf if min_t is None else min_t


def _agree(outputs: Sequence[Output], others: Sequence[Output]) -> bool:
    return _distance(outputs, others) <= DISTINCT_T


def _take_recompilations(record: dict[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Count the compilations after the first call, and the calls that require one."""
    seen = [(rows[0]["sizes"], rows[0]["scalars"])]
    is_compiled = []
    for row in rows[1:]:
        key = row["sizes"], row["scalars"]
        if row["verdict"] != "unsupported" and key not in seen:
            is_compiled.append(bool(row["num_compilations"]))
        seen.append(key)
    record["num_varied_recompilations"] = sum(row["num_compilations"] or 0 for row in rows)
    record["recompiles_each_call"] = all(is_compiled) if len(is_compiled) > 1 else None
    if record["recompiles_each_call"]:
        record["warnings"].append(
            f"recompiles_each_call: {len(is_compiled)} calls with other sizes or numbers were "
            f"compiled {record['num_varied_recompilations']} times"
        )


def _take_wrong(record: dict[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Record the worst call: its `min_t`, or a failure if the outputs differ in structure."""
    wrong = [row for row in rows if row["verdict"] == "wrong"]
    if any(row["min_t"] is None for row in wrong):
        _fail(record, Status.OUTPUT_MISMATCH, Reason.SHAPE, "judge")
    else:
        record["min_t"] = max(record["min_t"], *(row["min_t"] for row in wrong))


def _conclude(record: dict[str, Any], verdict: str, message: str) -> None:
    assert verdict in VERDICTS  # noqa: S101
    record["varied_verdict"] = verdict
    record["varied_message"] = read_message(message, _MAX_MESSAGE_LENGTH) or None


def _fail(record: dict[str, Any], status: Status, reason: Reason, phase: str) -> None:
    record |= {
        "status": str(status),
        "reason": str(reason),
        "phase": phase,
        "error_code": ERROR_CODES[status],
        "error_type": "VariedCallError",
        "error_message": record["varied_message"],
        **dict.fromkeys(("speedup", "speedup_low", "speedup_high", "paired_speedup")),
    }
