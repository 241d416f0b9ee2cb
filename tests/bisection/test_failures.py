"""When two trials failed in the same way."""

from __future__ import annotations

import math
from typing import Any

import pytest

from graphnet_datasets.bisection.failures import Failure, Verdict, error_class, find_failure


def compared(**more: Any) -> Verdict:
    return Verdict(**{"ending": "compared", "phase": "run", "min_t": -6.0, **more})


def error(message: str, kind: str = "RuntimeError", phase: str = "compile") -> Verdict:
    return Verdict(ending="error", phase=phase, error_type=kind, message=message)


def failure_of(verdict: Verdict, slower_than: float | None = None) -> Failure:
    found = find_failure(verdict, -3.0, slower_than)
    assert found is not None
    return found


CRASH = Verdict(ending="crash", phase="run", signal=11)
WRONG = compared(min_t=-1.0)
NAN = compared(min_t=math.inf, is_not_finite=True)
REFUSED = error("no lowering for einsum of shape [3, 4]", "NotImplementedError")
MISMATCH = Verdict(ending="mismatch", phase="run", error_type="output_shape", message="Output 0")
HANG = Verdict(ending="hang", phase="run")
SLOW = compared(speedup=0.5, speedup_low=0.4, speedup_high=0.6, lost_ms=10.0)


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [(CRASH, "crash"), (WRONG, "wrong"), (NAN, "not_finite"), (REFUSED, "error"), (HANG, "hang"),
     (MISMATCH, "mismatch")],
)  # fmt: skip
def test_each_failure_is_found_and_is_itself(verdict: Verdict, kind: str) -> None:
    failure = failure_of(verdict)
    assert failure.kind == kind
    assert failure.is_met_by(verdict)
    assert str(failure)
    others = {CRASH, WRONG, NAN, REFUSED, HANG, MISMATCH, compared()} - {verdict}
    met = {other for other in others if failure.is_met_by(other)}
    assert met == ({NAN} if kind == "wrong" else set())


@pytest.mark.parametrize(
    "verdict",
    [compared(), compared(min_t=-math.inf), compared(min_t=-3.0), Verdict(ending="nothing"),
     Verdict(ending="baseline", phase="load", message="out of memory")],
)  # fmt: skip
def test_other_failures_are_not_the_compilers(verdict: Verdict) -> None:
    assert find_failure(verdict, -3.0, None) is None


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (error("no lowering for einsum of shape [8]", "NotImplementedError"), True),
        (error("no lowering for einsum of shape [8]", "NotImplementedError", "run"), False),
        (error("no lowering for einsum of shape [8]", "ValueError"), False),
        (error("the table of strides is empty", "NotImplementedError"), False),
    ],
)
def test_an_error_is_the_same_by_phase_class_and_words(other: Verdict, is_same: bool) -> None:
    assert failure_of(REFUSED).is_met_by(other) is is_same


def test_a_wrapping_error_is_identified_by_its_cause() -> None:
    wrapped = error("AssertionError: strides\n  at x", "torch._inductor.exc.InductorError")
    assert error_class(wrapped) == "InductorError AssertionError"
    deeper = error("LoweringException: KeyError: 'x'\n", "torch._inductor.exc.InductorError")
    assert error_class(deeper) != error_class(wrapped)


def test_a_crash_is_the_same_by_signal() -> None:
    assert not failure_of(CRASH).is_met_by(Verdict(ending="crash", phase="run", signal=6))


def test_slow_needs_the_whole_interval_and_a_share_of_the_loss() -> None:
    failure = failure_of(SLOW, 0.8)
    assert failure.kind == "slow"
    assert find_failure(compared(speedup=0.7, speedup_high=0.9), -3.0, 0.8) is None
    assert find_failure(CRASH, -3.0, 0.8) is None
    assert failure.is_met_by(compared(speedup=0.5, speedup_high=0.6, lost_ms=3.0))
    # what it costs to call compiled code is not what makes the graph slow
    assert not failure.is_met_by(compared(speedup=0.1, speedup_high=0.2, lost_ms=0.05))
