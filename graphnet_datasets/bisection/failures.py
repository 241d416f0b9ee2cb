"""What came of a trial, and when two trials failed in the same way."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

Ending: TypeAlias = Literal[
    "compared", "nothing", "error", "crash", "hang", "memory", "mismatch", "baseline"
]
"""How a trial ended. `compared`: there are outputs of both arms; `nothing`: there is nothing to
compare; `mismatch`: another number, shape or dtype of outputs; `memory`: beyond the limit;
`baseline`: eager itself failed, which says nothing of the compiler. The others are failures of the
compiler in `phase`."""

WRAPPERS = frozenset({"BackendCompilerFailed", "InductorError", "LoweringException"})
"""Errors that only say that another one was raised; the message names that one."""

_INNER = re.compile(r"^\W*([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt))\b", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WORD = re.compile(r"[A-Za-z_]{3,}")
LEAST_SHARED = 0.5
"""Share of the words of two messages that has to be the same for the errors to be the same."""
LEAST_LOSS = 0.25
"""Share of the time that the whole graph loses which a part has to lose to be too slow as well:
otherwise what calling compiled code costs would make any operator one that is."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one trial showed, whatever is asked of it.

    `min_t` is the smallest t at which all outputs pass, `lost_ms` what the compiled graph takes
    longer than eager a call, `signal` the signal that ended the process. `random_test` is the test
    with the smallest p-value, `p_value`, of the outputs that depend on random draws.
    """

    ending: Ending
    phase: str = ""
    error_type: str = ""
    message: str = ""
    signal: int | None = None
    min_t: float | None = None
    random_test: str | None = None
    p_value: float | None = None
    is_not_finite: bool = False
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    lost_ms: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as JSON holds it; infinities as text."""
        return {
            name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Verdict:
        """Return the verdict that `to_json` gave.

        >>> verdict = Verdict(ending="compared", min_t=-math.inf)
        >>> Verdict.from_json(verdict.to_json()) == verdict
        True
        """
        numbers = ("min_t", "p_value", "speedup", "speedup_low", "speedup_high", "lost_ms")
        read: dict[str, Any] = {
            name: float(value) if name in numbers and value is not None else value
            for name, value in given.items()
        }
        return cls(**read)


@dataclasses.dataclass(frozen=True)
class Failure:
    """One way to fail: what the whole graph does, and every smaller one has to do too.

    `kind` is `error`, `crash`, `hang`, `memory`, `mismatch`, `wrong`, `not_finite` or `slow`;
    `first` the verdict of the whole graph.
    """

    kind: str
    first: Verdict
    t: float
    slower_than: float | None = None

    def __str__(self) -> str:
        first = self.first
        match self.kind:
            case "error":
                line = _COLOUR.sub("", first.message).strip().partition("\n")[0][:200]
                return f"{first.error_type} in phase {first.phase}: {line}"
            case "crash":
                how = "" if first.signal is None else f" by signal {first.signal}"
                return f"a crash{how} in phase {first.phase}"
            case "hang":
                return f"no end of phase {first.phase} within its time"
            case "memory":
                return f"more memory in phase {first.phase} than it may take"
            case "mismatch":
                return first.message
            case "not_finite":
                return "NaN or infinity where eager has numbers"
            case "slow":
                return f"a speedup of {first.speedup:.3g}, below {self.slower_than:g}"
        if first.min_t == math.inf and first.p_value is not None:
            return (
                f"random outputs whose distribution is not that of eager's: `{first.random_test}` "
                f"has p = {first.p_value:.2g}"
            )
        return f"outputs that pass only from t = {first.min_t:.2f} on, above {self.t:g}"

    def is_met_by(self, verdict: Verdict) -> bool:
        """Tell whether another trial failed in the same way.

        An error: in the same phase, of the same class, with half of the words of the message's
        first line. A crash: in the same phase, by the same signal. A hang or a lack of memory: in
        the same phase. A mismatch: in the same (number, shape or dtype). Wrong: at the same t; NaN
        and infinities are wrong as well, where the whole is wrong, but not the other way round.
        Slow: below the same bound with its whole interval, and by a quarter of the time that the
        whole loses.

        >>> first = Verdict(ending="crash", phase="run", signal=11)
        >>> failure = Failure("crash", first, t=-3)
        >>> failure.is_met_by(Verdict(ending="crash", phase="compile", signal=11))
        False
        """
        first = self.first
        match self.kind:
            case "error":
                return (
                    verdict.ending == "error"
                    and verdict.phase == first.phase
                    and error_class(verdict) == error_class(first)
                    and _shared_words(verdict.message, first.message) >= LEAST_SHARED
                )
            case "crash":
                return (verdict.ending, verdict.phase, verdict.signal) == (
                    "crash",
                    first.phase,
                    first.signal,
                )
            case "hang" | "memory":
                return (verdict.ending, verdict.phase) == (self.kind, first.phase)
            case "mismatch":
                return (verdict.ending, verdict.error_type) == ("mismatch", first.error_type)
            case "not_finite":
                return verdict.ending == "compared" and verdict.is_not_finite
            case "slow":
                return is_slower(verdict, self.slower_than or 0.0) and (
                    (verdict.lost_ms or 0.0) >= LEAST_LOSS * (first.lost_ms or 0.0)
                )
        return is_wrong(verdict, self.t)


def find_failure(verdict: Verdict, t: float, slower_than: float | None) -> Failure | None:
    """Return the way in which a trial failed, or None where it did not.

    With `slower_than` only that counts; outputs have to be compared for it.

    >>> find_failure(Verdict(ending="compared", min_t=-6.0), t=-3, slower_than=None) is None
    True
    """
    if slower_than is not None:
        slow = is_slower(verdict, slower_than)
        return Failure("slow", verdict, t, slower_than) if slow else None
    if verdict.ending in ("nothing", "baseline"):
        return None
    if verdict.ending != "compared":
        return Failure(verdict.ending, verdict, t)
    if verdict.is_not_finite:
        return Failure("not_finite", verdict, t)
    return Failure("wrong", verdict, t) if is_wrong(verdict, t) else None


def is_wrong(verdict: Verdict, t: float) -> bool:
    """Tell whether outputs were compared and do not pass at t."""
    return verdict.ending == "compared" and verdict.min_t is not None and verdict.min_t > t


def is_slower(verdict: Verdict, bound: float) -> bool:
    """Tell whether the whole interval of the speedup lies below a bound."""
    high = verdict.speedup if verdict.speedup_high is None else verdict.speedup_high
    return verdict.ending == "compared" and high is not None and high < bound


def error_class(verdict: Verdict) -> str:
    """Return the class of an error without its module; of one that wraps another, both.

    >>> error_class(Verdict(ending="error", error_type="torch._dynamo.exc.BackendCompilerFailed",
    ...     message="backend='mine' raised:\\nKeyError: 'relu'"))
    'BackendCompilerFailed KeyError'
    """
    names = [verdict.error_type.rpartition(".")[2]]
    if names[0] in WRAPPERS:
        inner = [each.rpartition(".")[2] for each in _INNER.findall(verdict.message)]
        names += [each for each in inner if each not in WRAPPERS][:1]
    return " ".join(names)


def _shared_words(message: str, first: str) -> float:
    one, other = (_words(each) for each in (message, first))
    if not one and not other:
        return 1.0
    return len(one & other) / max(len(one | other), 1)


def _words(message: str) -> set[str]:
    """Return the words of what an error says first; those of a wrapped one included."""
    lines = [line for line in message.splitlines() if line.strip()]
    kept = lines[: 2 if lines and lines[0].endswith("raised:") else 1]
    return set(_WORD.findall(" ".join(kept)[:400]))
