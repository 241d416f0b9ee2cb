"""Statuses and reasons derived from how a worker ended; printed text is never read."""

from __future__ import annotations

from ...isolation import Ending, Outcome
from ...schema import Reason, Status

STATUS_OF_PHASE = {
    "load": Status.BASELINE_FAILED,
    "baseline": Status.BASELINE_FAILED,
    "compile": Status.COMPILE_FAILED,
    "run": Status.RUN_FAILED,
}
_REASON_OF_ENDING = {
    Ending.ERROR: Reason.EXCEPTION,
    Ending.CRASH: Reason.CRASH,
    Ending.TIMEOUT: Reason.TIMEOUT,
    Ending.OUT_OF_MEMORY: Reason.OUT_OF_MEMORY,
    Ending.TOO_MANY_PROCESSES: Reason.CRASH,
    Ending.PROTOCOL: Reason.CRASH,
    Ending.FINISHED: Reason.CRASH,
}
_MEMORY_TYPES = frozenset({"MemoryError", "OutOfMemoryError", "MemoryLimitError"})
_MEMORY_TEXTS = ("can't allocate memory", "std::bad_alloc", "not enough memory")
"""Messages of torch for failed allocations on a CPU, which have no exception type of their own."""


def is_harness_failure(outcome: Outcome) -> bool:
    """Return whether the worker was lost before eager could run, which is a fault of the harness.

    Errors, timeouts and running out of memory while loading are attributed to the sample.
    """
    return outcome.phase == "load" and outcome.ending in (
        Ending.CRASH,
        Ending.PROTOCOL,
        Ending.TOO_MANY_PROCESSES,
    )


def reason_of(outcome: Outcome) -> Reason:
    """Return why a run ended; running out of memory can appear as many exception types."""
    error = outcome.error or {}
    is_memory = error.get("type", "").rpartition(".")[2] in _MEMORY_TYPES or any(
        text in error.get("message", "") for text in _MEMORY_TEXTS
    )
    if outcome.ending is Ending.ERROR and is_memory:
        return Reason.OUT_OF_MEMORY
    if outcome.phase == "baseline" and error.get("type", "").endswith(".NothingVariesError"):
        return Reason.NOTHING_VARIES
    return _REASON_OF_ENDING[outcome.ending]
