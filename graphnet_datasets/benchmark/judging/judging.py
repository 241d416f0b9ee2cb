"""Records of runs, built from a worker's ending and messages; the status is the last phase.

Printed text is never read. The messages come from a process that ran a candidate, so their types
are checked and the speedup is computed here from the raw times.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...isolation import Ending, Outcome
from ...schema import ERROR_CODES, Reason, Status, empty_run
from ...schema.runs import COLD
from ...scores.undecidable import undecidable_reason
from ...timing.disturbance import Interval
from ..draw_plan import DrawPlan
from ..handover import (
    FIRST,
    PROFILE_PHASES,
    RECORDED_PHASES,
    WRITTEN,
    DrawnCalls,
    JudgedCall,
    digest_of,
    read_written,
)
from .calls import (
    DECIDED_T,
    Pair,
    compare_calls,
    find_constant,
    find_worst_elements,
    moves_by_rounding,
)
from .correctness import (
    Drawn,
    Output,
    accuracy_warnings,
    compare_outputs,
    eager_t,
    find_mismatch,
    hash_outputs,
    overall_min_t,
    overall_null_t,
    overall_stale_t,
)
from .eager_alone import EagerAlone
from .endings import STATUS_OF_PHASE, is_harness_failure, reason_of
from .random_outputs import RANDOM_SHAPES, RandomVerdict, judge_random_outputs
from .reported import (
    read_changes,
    read_message,
    read_number,
    read_text,
    take_compile_cache,
    take_figures,
    take_off_pauses,
)
from .stamps import TimesError
from .ties import SettledCalls, settle, without_ties
from .times import (
    take_alone,
    take_layouts,
    take_looks,
    take_times,
    undisturbed_warnings,
    was_busy,
)
from .turn_times import take_turn_times

_ROW_COLUMNS = (
    "structure_hash",
    "signature_hash",
    "family",
    "task",
    "subtask",
    "framework",
    "source",
    "num_ops",
)
_NUMBERS = (
    "load_time_s", "compile_time_s", "first_call_s", "num_recompilations",
    "baseline_peak_memory_bytes", "candidate_peak_memory_bytes", "fallback_share",
    "baseline_cpu_ms", "candidate_cpu_ms", "baseline_wall_ms", "candidate_wall_ms",
    "baseline_kernel_ms", "candidate_kernel_ms",
    "baseline_num_kernels", "candidate_num_kernels",
)  # fmt: skip
MAX_MESSAGE_LENGTH = 4000
MAX_SUSPECTED = 3
"""The number of runs with suspicious times after which a candidate is rejected."""


def begin_record(
    row: Mapping[str, Any],
    *,
    settings: Mapping[str, Any],
    compiler_options: Mapping[str, Any],
    **columns: Any,
) -> dict[str, Any]:
    """Return a record with everything known before the run."""
    return {
        **empty_run(),
        "sample_id": row["id"],
        **{name: row.get(name) for name in _ROW_COLUMNS},
        "compiler_options": json.dumps(dict(compiler_options), sort_keys=True),
        "baseline": "eager",
        "weights": settings["weights"],
        "input_mode": settings["input_mode"],
        "seed": settings["seed"],
        "cache_mode": settings["cache_mode"],
        "compile_cache": settings.get("compile_cache", COLD),
        "settings": json.dumps(settings, sort_keys=True),
        **columns,
    }


class Run:
    """One run of a candidate, from the end of its process to its record.

    `eager` is the outcome of eager's process if the two took turns. `plan` is the plan of the draws
    of a graph with random outputs.
    """

    def __init__(
        self,
        record: dict[str, Any],
        outcome: Outcome,
        eager: Outcome | None = None,
        *,
        plan: DrawPlan | None = None,
    ) -> None:
        self.record, self._outcome, self._eager = record, outcome, eager
        self.drawn_calls: DrawnCalls | None = None
        """The repeated calls with other seeds, of a graph whose outputs are random."""
        self.draws: list[Drawn] | None = None
        self.first: list[Output] | None = None
        self.calls: list[JudgedCall] = []
        self.judged: list[list[Output]] = []
        self._seen: set[str] = set()
        self._alone: EagerAlone | None = None
        self.paired_interval: Interval = (None, None)
        """That of the speedup before eager's times alone were looked at."""
        self.suspicions: list[str] = []
        """Sentences about durations that are forged, or lengthened by other processes."""
        self._messages = outcome.merged()
        written = read_written(self._messages.get(WRITTEN))
        self.plan = None if plan is None else plan.with_written(written)
        self.is_fresh = self._messages.get("is_fresh") is True
        record["duration_s"] = outcome.duration_s
        record["warnings"] = self._warnings()
        self.has_changed_state = "state of calls" in self._messages
        """Whether calls of the candidate changed state outside the graph."""
        self.restores_state = False
        """Whether this run is the one that restores the state after each call."""
        record["changed_state"] = read_changes(self._messages)
        for name in _NUMBERS:
            if name in self._messages:
                record[name] = read_number(self._messages[name])
        take_off_pauses(record, self._messages, outcome.pauses)
        take_compile_cache(record, self._messages)
        self.has_outputs = self._take_ending()

    def take_changes(self, earlier: Run) -> None:
        """Add the state changes that an earlier run of the candidate made to the record."""
        self.restores_state = earlier.has_changed_state or earlier.restores_state
        changes = [*earlier.record["changed_state"], *self.record["changed_state"]]
        self.record["changed_state"] = list(dict.fromkeys(changes))

    @property
    def is_doubted(self) -> bool:
        """True if the baseline was disturbed, so that both arms must be timed again in turns."""
        record = self.record
        return bool(record["status"] == Status.OK and record["is_baseline_disturbed"])

    @property
    def is_refused_by_times(self) -> bool:
        """True if the run is rejected for a duration measured on a quiet machine."""
        return bool(self.suspicions) and self.record["reason"] == Reason.TAMPERING

    def _take_ending(self) -> bool:
        """Record a failure; return whether there are outputs to judge."""
        outcome, refused = self._outcome, self._messages.get("refused")
        if is_harness_failure(outcome):
            self._fail(Status.HARNESS_FAILED, Reason.CRASH, outcome.phase, outcome.error)
        elif outcome.ending is not Ending.FINISHED and outcome.phase not in PROFILE_PHASES:
            phase = RECORDED_PHASES.get(outcome.phase, outcome.phase)
            if phase == "run" and self._messages.get("failed_phase") == "compile":
                phase = "compile"  # torch.compile raises recompilation errors from a call
            self._fail(STATUS_OF_PHASE[phase], reason_of(outcome), phase, outcome.error)
        elif isinstance(refused, dict) and refused.get("reason") in set(Reason):
            self._refuse(Reason(refused["reason"]), str(refused.get("message")))
        elif self._messages.get("is_timed") is not True or f"outputs {FIRST}" not in self._messages:
            self.fail_protocol("The worker ended without reporting times and outputs.")
        else:
            try:
                if self._eager is None:
                    suspicions = take_times(self.record, self._messages, outcome)
                else:
                    suspicions = take_turn_times(self.record, self._messages, outcome, self._eager)
                early = take_layouts(self.record, outcome)
                self._seen = take_looks(self.record, outcome)
            except TimesError as error:
                if error.is_forged:
                    self._refuse(Reason.TAMPERING, str(error))
                else:
                    self.fail_protocol(str(error))
            else:
                self.suspicions = suspicions if early is None else [*suspicions, early]
                if self.suspicions and self._are_times_reliable():
                    self._refuse(Reason.TAMPERING, self.suspicions[0])
                    return False
                take_figures(self.record, self._messages)
                return True
        return False

    def _are_times_reliable(self) -> bool:
        """Return whether the kernel recorded the times, on an otherwise idle machine."""
        outcomes = [self._outcome] if self._eager is None else [self._outcome, self._eager]
        return all(outcome.is_kernel_time for outcome in outcomes) and not was_busy(self.record)

    def _refuse(self, reason: Reason, message: str) -> None:
        """Record that the candidate is wrong, whatever the values of its outputs."""
        error = {"type": "", "message": message}
        if reason is Reason.TAMPERING:
            self._fail(Status.RUN_FAILED, reason, "run", error)
        else:
            self._fail(Status.OUTPUT_MISMATCH, reason, "judge", error)

    def fail_protocol(self, message: str) -> None:
        """Record that the worker's messages or files were invalid after the baseline had run."""
        phase = RECORDED_PHASES.get(self._outcome.phase, self._outcome.phase)
        error = {"type": "ProtocolError", "message": message}
        self.has_outputs = False
        status = STATUS_OF_PHASE[phase]
        self._fail(status, Reason.CRASH, phase, error)

    def _fail(
        self, status: Status, reason: Reason, phase: str, error: Mapping[str, str] | None
    ) -> None:
        self.record |= {
            "status": str(status),
            "reason": str(reason),
            "phase": phase,
            "error_code": ERROR_CODES[status],
            "error_type": read_text((error or {}).get("type", ""), 200),
            "error_message": read_message((error or {}).get("message", ""), MAX_MESSAGE_LENGTH),
        }
        # A failed run has no speedup, whatever its times.
        self.record |= dict.fromkeys(("speedup", "speedup_low", "speedup_high", "paired_speedup"))
        if status is not Status.OUTPUT_MISMATCH:
            self.record |= dict.fromkeys(
                ("baseline_latency_ms", "candidate_latency_ms", "is_candidate_first")
            )

    def judge(self, eager_alone: EagerAlone) -> None:
        """Compare the outputs with eager's, and eager's times with those of eager alone."""
        if eager_alone.problem is not None:
            self._fail(*eager_alone.problem)
            return
        self.paired_interval = self.record["speedup_low"], self.record["speedup_high"]
        if self._eager is None:
            self._alone = eager_alone
            self._take_alone(self.record, eager_alone)
        if not self._are_judged_outputs_seen():
            self._refuse(
                Reason.TAMPERING,
                "The outputs that were handed over are not those that were there when the timed "
                "calls had ended.",
            )
            return
        again = compare_outputs(eager_alone.first, eager_alone.again)
        determinism_t = overall_min_t(again)
        self.record |= {
            "determinism_t": determinism_t,
            "is_deterministic": determinism_t == -math.inf,
        }
        compared: list[Pair] = [
            (eager_alone.first, self.first or []),
            *zip(eager_alone.judged, self.judged, strict=True),
        ]
        for expected, actual in compared:
            reason, message = find_mismatch(expected, actual)
            if reason is Reason.SHAPE and self._has_random_shapes(eager_alone):
                self._take_random_shapes(compare_outputs(expected, actual))
                return
            if reason is not Reason.NONE:
                self.record["outputs"] = compare_outputs(expected, actual)
                error = {"type": "", "message": message}
                self._fail(Status.OUTPUT_MISMATCH, reason, "judge", error)
                return
        oracle = _fitting(eager_alone)
        self.record["judged"] = self._describe_judged(compared)
        first, settled = eager_alone.first, SettledCalls(compared)
        if eager_alone.orders is not None:
            unknown = [None] * (len(compared) - len(eager_alone.keys))
            keys = [*eager_alone.keys, *unknown]
            settled = settle(compared, eager_alone.orders, keys)
            compared = list(settled.calls)
            if oracle is not None:
                oracle = without_ties(first, oracle, eager_alone.orders, keys[0])
        rows = compare_calls(compared, oracle)
        random = RandomVerdict()
        if self.plan is not None:
            random = judge_random_outputs(rows, compared, self.plan, self.draws, eager_alone.draws)
        why_open = settled.take(rows, random.places)
        self.record["is_random"] = random.is_random
        self.record["warnings"] += random.warnings
        self._take_wrong_elements(rows, compared, random.places)
        # Random outputs change between calls regardless of the inputs.
        steady = [place for place in range(len(rows)) if place not in random.places]
        compared = [
            ([expected[place] for place in steady], [actual[place] for place in steady])
            for expected, actual in compared
        ]
        if constant := find_constant([rows[place] for place in steady], compared):
            self.record["outputs"] = rows
            error = {"type": "", "message": constant}
            if moves_by_rounding(compared):
                error["message"] = (
                    "Eager's outputs move with its inputs by no more than other sums round them, "
                    "so a stored answer would be right, and a time would say nothing."
                )
                status = STATUS_OF_PHASE["baseline"]
                self._fail(status, Reason.NOTHING_VARIES, "baseline", error)
                return
            self._fail(Status.OUTPUT_MISMATCH, Reason.CONSTANT, "judge", error)
            return
        self._warn_of_accuracy(rows, eager_alone.oracle_problem)
        self._take_compared(
            rows,
            min_t=overall_min_t(rows),
            null_t=overall_null_t(rows),
            stale_t=overall_stale_t(rows),
            eager_t=None if oracle is None else eager_t(first, oracle),
        )
        if (self.record["min_t"] or 0.0) <= DECIDED_T:
            self.record["undecidable_reason"] = random.undecidable_reason or self._why_no_times()
        self.record["undecidable_reason"] = why_open or undecidable_reason(self.record)

    def _take_wrong_elements(
        self, rows: Sequence[Mapping[str, Any]], compared: Sequence[Pair], random: frozenset[int]
    ) -> None:
        """Record the worst elements of the first call in which the outputs are wrong."""
        places = [place for place in range(len(rows)) if place not in random]
        number, elements = find_worst_elements(rows, compared, places)
        if elements:
            seed = self.record["seed"] + (self.calls[number - 1].set_index if number else 0)
            self.record["wrong_elements"] = [element | {"seed": seed} for element in elements]

    def _why_no_times(self) -> str | None:
        """Return why the times of a suspected run allow no verdict; None without a suspicion."""
        if not self.suspicions:
            return None
        return (
            "Other processes took the processors, so the times do not show whether the candidate "
            f"forges them. {self.suspicions[0]}"
        )

    def _has_random_shapes(self, eager_alone: EagerAlone) -> bool:
        """Return whether the shapes of eager's outputs differ between draws."""
        return self.drawn_calls is not None and eager_alone.draws is None

    def _take_random_shapes(self, rows: list[dict[str, Any]]) -> None:
        """Record that outputs with random shapes allow no verdict."""
        self._take_compared(rows, min_t=math.inf, is_random=True, undecidable_reason=RANDOM_SHAPES)

    def _take_compared(self, rows: list[dict[str, Any]], **figures: Any) -> None:
        """Record that the outputs were compared, with their rows and statistics."""
        self.record |= {
            "status": str(Status.OK),
            "reason": str(Reason.NONE),
            "phase": "judge",
            "error_code": ERROR_CODES[Status.OK],
            "outputs": rows,
            **figures,
        }

    def _take_alone(
        self, record: dict[str, Any], eager_alone: EagerAlone, *, is_known_busy: bool = False
    ) -> None:
        take_alone(
            record,
            eager_alone.alone_ms,
            eager_alone.alone_preemptions,
            eager_alone.alone_machine,
            self._messages.get("baseline_first_ms"),
            is_known_busy=is_known_busy,
        )

    def look_again(self, eager_alone: EagerAlone) -> None:
        """Compare a doubted baseline with eager alone in one more process.

        A candidate that disturbs eager does so in every comparison. If eager alone is now as slow
        as next to the candidate, eager alone varies between processes. The machine is then noisy,
        and the rule for noisy machines settles the doubt: the interval covers the speedup against
        both.
        """
        if eager_alone.problem is not None or self._alone is None:
            return
        low, high = self.paired_interval
        warnings = undisturbed_warnings(self.record)
        before = {**self.record, "speedup_low": low, "speedup_high": high}
        looked = {**before, "warnings": [*warnings]}
        self._take_alone(looked, eager_alone)
        if looked["is_baseline_disturbed"] is False:
            self.record |= {**before, "warnings": warnings}
            self._take_alone(self.record, self._alone, is_known_busy=True)

    def _are_judged_outputs_seen(self) -> bool:
        """Return whether the kernel recorded the hash of each judged excerpt."""
        return all(
            digest_of(
                np.ascontiguousarray(output.elements).view(np.uint8).data for output in outputs
            )
            in self._seen
            for call, outputs in zip(self.calls, self.judged, strict=True)
            if call.start is not None
        )

    def _describe_judged(
        self, compared: Sequence[tuple[Sequence[Output], Sequence[Output]]]
    ) -> list[dict[str, Any]]:
        """Return the information needed to reproduce the judged outputs, and their hashes."""
        calls: list[JudgedCall | None] = [None, *self.calls]
        return [
            {
                "seed": self.record["seed"] + (0 if call is None else call.set_index),
                "start": None if call is None else call.start,
                "is_candidate_first": None if call is None else call.is_candidate_first,
                "baseline_hash": hash_outputs(expected),
                "candidate_hash": hash_outputs(actual),
            }
            for call, (expected, actual) in zip(calls, compared, strict=True)
        ]

    def _warn_of_accuracy(self, rows: Sequence[Mapping[str, Any]], oracle_problem: str) -> None:
        """Warn if the candidate's distance from float64 is a multiple of eager's distance."""
        warnings = self.record["warnings"]
        if oracle_problem:
            warnings.append(f"no_oracle: eager could not be run in float64: {oracle_problem}")
        warnings += accuracy_warnings(rows)

    def _warnings(self) -> list[str]:
        outcome = self._outcome
        texts = self._messages.get("warnings", self._messages.get("compile_warnings"))
        warnings = (
            [read_message(text, 1000) for text in texts[:100]] if isinstance(texts, list) else []
        )
        if outcome.num_leftovers:
            warnings.append(f"left {outcome.num_leftovers} processes running, which were killed")
        if outcome.num_log_bytes > len(outcome.log.encode()) + 100:
            warnings.append(f"printed {outcome.num_log_bytes} bytes, of which the ends were kept")
        problem = self._messages.get("profile_problem")
        if outcome.phase in PROFILE_PHASES and outcome.ending is not Ending.FINISHED:
            problem = outcome.error or {"type": outcome.ending, "message": ""}
        if isinstance(problem, dict):
            error = f"{problem.get('type')}: {problem.get('message')}"
            warnings.append(read_message(f"no_profile: the profiled calls failed: {error}", 300))
        return warnings


def settle_suspicion(runs: Sequence[Run]) -> Run:
    """Return the run to record, for a candidate whose run was repeated while suspected.

    A run without a suspicion is recorded, with a warning that quotes the earlier suspicions. If
    every run is suspected, a rejected run is recorded, because it was measured on a quiet machine.
    """
    *earlier, last = runs
    if not last.suspicions:
        last.record["warnings"] += [
            f"times_repeated: {suspicion} A repetition does not confirm that."
            for run in earlier
            for suspicion in run.suspicions
        ]
        return last
    return next((run for run in runs if run.is_refused_by_times), last)


def _fitting(eager_alone: EagerAlone) -> list[Output] | None:
    """Return the oracle if it has as many outputs as eager, otherwise None."""
    oracle = eager_alone.oracle
    return oracle if oracle is not None and len(oracle) == len(eager_alone.first) else None
