"""Outcomes of trials, and the comparison of two failures."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

Ending: TypeAlias = Literal[
    "compared", "nothing", "error", "crash", "hang", "memory", "mismatch", "baseline"
]
"""How a trial ended. `compared`: both arms have outputs; `nothing`: no outputs to compare;
`mismatch`: the number, shape or dtype of outputs differs; `memory`: over the limit; `baseline`:
eager itself failed, which says nothing about the compiler. The other values are failures of the
compiler in `phase`.
"""

WRAPPERS = frozenset({"BackendCompilerFailed", "InductorError", "LoweringException"})
"""Errors that only wrap another error, which the message names."""

_INNER = re.compile(r"^[^\w\n]*([A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt))\b", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WORD = re.compile(r"[A-Za-z_]{3,}")
LEAST_SHARED = 0.5
"""Minimum share of common words for two error messages to be considered equal."""
LEAST_LOSS = 0.25
"""Minimum share of the whole graph's lost time that a slow part must lose. Without it, the overhead
of calling compiled code would make any single operator too slow.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of one trial.

    `min_t` is the smallest t at which all outputs pass, `lost_ms` is how much longer a compiled
    call takes than an eager call, and `signal` is the signal that ended the process. `random_test`
    is the test with the smallest p-value, `p_value`, among outputs that depend on random draws.
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
        """Return the verdict as a JSON object, with infinities as strings."""
        return {
            name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Verdict:
        """Parse the result of `to_json`.

        >>> verdict = Verdict(ending="compared", min_t=-math.inf)
        >>> Verdict.from_json(verdict.to_json()) == verdict
        True
        """
        numbers = ("min_t", "p_value", "speedup", "speedup_low", "speedup_high", "lost_ms")
        values: dict[str, Any] = {
            name: float(value) if name in numbers and value is not None else value
            for name, value in fields.items()
        }
        return cls(**values)


@dataclasses.dataclass(frozen=True)
class Failure:
    """A failure of the whole graph that every smaller graph must reproduce.

    `kind` is `error`, `crash`, `hang`, `memory`, `mismatch`, `wrong`, `not_finite` or `slow`;
    `first` is the verdict of the whole graph, or in a result that of the smallest part.
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
        """Return whether another trial failed in the same way.

        An error must match in phase, class and half of the words in the message's first line. A
        crash must match in phase and signal; a hang or lack of memory in phase; a mismatch in kind
        (number, shape or dtype). Wrong outputs must fail at the same t; if the whole is wrong, NaN
        and infinities also match, but not the reverse. The whole speedup interval of a slow part
        must be below the same bound, and the part must lose at least a quarter of the time that the
        whole graph loses.

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
    """Return the failure that a trial shows, or None.

    With `slower_than`, only a low speedup is a failure, and only if outputs were compared.

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
    """Return whether outputs were compared and do not pass at t."""
    return verdict.ending == "compared" and verdict.min_t is not None and verdict.min_t > t


def is_slower(verdict: Verdict, bound: float) -> bool:
    """Return whether the whole interval of the speedup is below a bound."""
    high = verdict.speedup if verdict.speedup_high is None else verdict.speedup_high
    return verdict.ending == "compared" and high is not None and high < bound


def error_class(verdict: Verdict) -> str:
    """Return an error's class without its module; for a wrapper, also the wrapped class.

    >>> error_class(Verdict(ending="error", error_type="torch._dynamo.exc.BackendCompilerFailed",
    ...     message="backend='mine' raised:\\nKeyError: 'relu'"))
    'BackendCompilerFailed KeyError'
    """
    names = [verdict.error_type.rpartition(".")[2]]
    if names[0] in WRAPPERS:
        inner = [class_name.rpartition(".")[2] for class_name in _INNER.findall(verdict.message)]
        names += [class_name for class_name in inner if class_name not in WRAPPERS][:1]
    return " ".join(names)


def _shared_words(message: str, first: str) -> float:
    left, right = (_words(text) for text in (message, first))
    if not left and not right:
        return 1.0
    return len(left & right) / max(len(left | right), 1)


def _words(message: str) -> set[str]:
    """Return the words at the beginning of an error message, including a wrapped error."""
    lines = [line for line in message.splitlines() if line.strip()]
    first_lines = lines[: 2 if lines and lines[0].endswith("raised:") else 1]
    return set(_WORD.findall(" ".join(first_lines)[:400]))
