"""Results of the process that ran eager without a candidate."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ...analysis.orders import Orders
from ...isolation import Ending, Outcome
from ...schema import Reason, Status
from .correctness import Drawn, Output
from .endings import is_harness_failure, reason_of
from .reported import read_message


@dataclasses.dataclass
class EagerAlone:
    """Eager run alone: how it ended, its outputs in each judged call and its times.

    `draws` contains its outputs in repeated calls with different seeds, or None without such calls
    or with varying shapes. `earlier` is the result for an earlier candidate; it provides everything
    except `judged`, `draws` and `keys`. `orders` are the open orders of the sample. `keys` contains
    the sorted arrays of the first call and of the judged calls for which they were stored.
    """

    outcome: Outcome | None = None
    alone_ms: Any = None
    alone_preemptions: Any = None
    alone_machine: Any = None
    handover_problem: str = ""
    not_finite: str = ""
    first: list[Output] = dataclasses.field(default_factory=list)
    again: list[Output] = dataclasses.field(default_factory=list)
    judged: list[list[Output]] = dataclasses.field(default_factory=list)
    oracle: list[Output] | None = None
    draws: list[Drawn] | None = None
    orders: Orders | None = None
    keys: list[list[Output]] = dataclasses.field(default_factory=list)
    earlier: EagerAlone | None = None

    @property
    def oracle_problem(self) -> str:
        """The reason why a requested oracle is missing, or ""."""
        if self.earlier is not None:
            return self.earlier.oracle_problem
        outcome = self.outcome
        if outcome is None or self.oracle is not None:
            return ""
        error = outcome.merged().get("oracle_problem")
        if outcome.phase == "oracle" and outcome.ending is not Ending.FINISHED:
            error = outcome.error
        if not isinstance(error, dict):
            return ""
        return read_message(f"{error.get('type')}: {error.get('message')}", 300)

    @property
    def problem(self) -> tuple[Status, Reason, str, Mapping[str, str] | None] | None:
        """Status, reason, phase and error if eager alone failed; None otherwise."""
        outcome = self.outcome
        if outcome is None or is_harness_failure(outcome):
            return Status.HARNESS_FAILED, Reason.CRASH, "load", outcome and outcome.error
        if outcome.ending is not Ending.FINISHED and outcome.phase != "oracle":
            return Status.BASELINE_FAILED, reason_of(outcome), "baseline", outcome.error
        if self.handover_problem:
            error = {"type": "HandoverError", "message": self.handover_problem}
            return Status.BASELINE_FAILED, Reason.EXCEPTION, "baseline", error
        if self.not_finite:
            error = {"type": "NotFiniteError", "message": self.not_finite}
            return Status.BASELINE_FAILED, Reason.NOT_FINITE, "baseline", error
        return None
