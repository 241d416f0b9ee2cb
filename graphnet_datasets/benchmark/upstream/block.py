"""A state machine over the log lines of one sample of an upstream benchmark."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from typing import Any

from ...json_text import parse_json
from ...schema import Reason, Status
from .words import UpstreamWord

_COMPARISON = "[Correctness]["
_MARKER = re.compile(r"\[(?P<kind>[A-Za-z]+)\](?P<rest>.*)")
_FAILURE = re.compile(r"\[Fail due to (?P<cause>.*?)\.?\]")
_TRIAL = re.compile(r"Trial \d+: e2e=(?P<ms>[0-9.eE+-]+) ms")
_KEYED = re.compile(r"\[(?P<key>[^]]+)\]:? ?(?P<value>.*)")
_ARM_FAILED = re.compile(
    r"(?:(?P<eager>Eager model execution|Run model in eager mode|Run model)"
    r"|Compiled model execution|Run model in compiled mode) failed: (?P<message>.*)"
)
_GATE = "Environment fluctuation detected"
"""The message that upstream raises after timing if the times of an arm vary too much. It discards a
run that was otherwise successful."""
_ERROR = re.compile(
    r"(?<![A-Za-z_.])\.*(?P<type>[A-Za-z_][A-Za-z_.]*(?:Error|Exception)): ?(?P<message>.*)"
)


@dataclasses.dataclass(slots=True)
class Block:
    """The information read so far from the lines of one sample."""

    path: str
    config: dict[str, str] = dataclasses.field(default_factory=dict)
    eager_ended: bool | None = None
    compiled_ended: bool | None = None
    cause: str = ""
    failed_arms: set[str] = dataclasses.field(default_factory=set)
    gated_arms: set[str] = dataclasses.field(default_factory=set)
    dtypes: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    shapes: dict[str, list[list[int]]] = dataclasses.field(default_factory=dict)
    matches: dict[str, bool] = dataclasses.field(default_factory=dict)
    comparisons: dict[str, str] = dataclasses.field(default_factory=dict)
    results: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    latencies: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    trials: list[list[float]] = dataclasses.field(default_factory=list)
    speedup: float | None = None
    error: tuple[str, str] | None = None
    lines: list[str] = dataclasses.field(default_factory=list)

    def read_line(self, line: str, prompt: str) -> None:
        """Process the next line of the sample; `prompt` precedes upstream's own lines."""
        self.lines.append(line)
        start = line.find(f"{prompt}[")
        if start > 0 and not prompt:
            start = -1
        if start >= 0:
            self.read_marker(line[start + len(prompt) :].rstrip())
        else:
            self.read_output(line.rstrip())

    @property
    def digest(self) -> str:
        """A hash of all lines, including the first."""
        text = "".join(self.lines).encode(errors="surrogatepass")
        return hashlib.blake2b(text, digest_size=8).hexdigest()

    @property
    def upstream_word(self) -> str:
        """The status that upstream's tools report for the sample."""
        markers = UpstreamWord()
        for line in self.lines:
            markers.read_line(line)
        return markers.word

    def read_marker(self, text: str) -> None:
        """Process a line that upstream prints about the sample."""
        if text.startswith(_COMPARISON):  # tested first: three quarters of all lines
            key, _, value = text[len(_COMPARISON) :].partition("]")
            self.comparisons[key] = value.lstrip(": ")
        elif failure := _FAILURE.match(text):
            self.cause = failure["cause"].lower()
        elif marker := _MARKER.match(text):
            rest = marker["rest"].strip()
            match marker["kind"]:
                case "Config":
                    key, _, value = rest.partition(": ")
                    self.config[key] = value.strip()
                case "Result":
                    self._read_result(rest)
                case "Datatype":
                    self._read_keyed(rest, self.dtypes, str.split)
                case "Shape" if rest.startswith("["):
                    self._read_keyed(rest, self.shapes, _shapes)
                case "Shape" | "DataType":
                    self.matches[marker["kind"]] = "match:True" in rest
                case "Performance":
                    self._read_keyed(rest, self.latencies, _statistics)
                case "Speedup":
                    speedups: dict[str, list[float]] = {}
                    self._read_keyed(rest, speedups, numbers)
                    if speedups.get("e2e"):
                        self.speedup = speedups["e2e"][0]
                case "Profiling":
                    self.trials.append([])
                case _:
                    pass

    def read_output(self, text: str) -> None:
        """Process a line that the sample's process printed."""
        trial = _TRIAL.match(text)
        if trial and self.trials:
            self.trials[-1] += numbers(trial["ms"])
        elif text.startswith("[Profiling]"):
            self.trials.append([])
        else:
            failure = _ARM_FAILED.match(text)
            if failure:
                is_gated = failure["message"].startswith(_GATE)
                failed = self.gated_arms if is_gated else self.failed_arms
                failed.add("eager" if failure["eager"] else "compiled")
            error = _ERROR.search(text)
            if error:
                self.error = (error["type"], error["message"].strip())

    def _read_result(self, rest: str) -> None:
        key, _, value = rest.lstrip("[").partition("]" if rest.startswith("[") else ":")
        if rest.startswith("["):  # [Result][status] eager:success compiled:failed
            for word in value.split():
                arm, _, outcome = word.partition(":")
                if arm == "eager":
                    self.eager_ended = outcome == "success"
                elif arm == "compiled":
                    self.compiled_ended = outcome == "success"
        elif key == "status" and value.strip() == "success":
            # [Result] status: success; the cause of a failure is on a separate line.
            self.eager_ended = self.compiled_ended = True

    @staticmethod
    def _read_keyed(rest: str, into: dict[str, Any], convert: Any) -> None:
        keyed = _KEYED.match(rest)
        if keyed:
            value = convert(keyed["value"])
            if value is not None:
                into[keyed["key"]] = value

    def compared(self, key: str) -> list[float]:
        """Return the result for each output of the comparison `key`; empty if the log lacks it."""
        if key not in self.results:
            self.results[key] = numbers(self.comparisons.get(key, ""))
        return self.results[key]

    @property
    def num_finished_arms(self) -> int:
        """The number of arms with all their timed calls in the log."""
        wanted = self.config.get("trials", "")
        count = int(wanted) if wanted.isdigit() else 1
        return sum(len(trials) >= count for trials in self.trials)

    @property
    def is_of_one_arm(self) -> bool:
        """True if the log covers one arm only, as when outputs are stored, or compared to stored
        outputs.
        """
        return self.eager_ended is not None and self.compiled_ended is None and not self.cause

    def outcome(self) -> tuple[Status, Reason, str]:
        """Return the status, its reason and the phase in which the sample ended."""
        baseline = self._baseline_failure()
        if baseline is not None:
            return baseline
        if "compiled" not in self.dtypes and "equal" not in self.comparisons:
            return self._end_before_comparison()
        mismatch = self._mismatch()
        if mismatch is not None:
            return Status.OUTPUT_MISMATCH, mismatch, "judge"
        if self.compiled_ended is False or self.cause:
            return Status.RUN_FAILED, Reason.EXCEPTION, "run"
        if self.speedup is None or "equal" not in self.comparisons:
            return Status.RUN_FAILED, Reason.CRASH, "judge"
        return Status.OK, Reason.NONE, "judge"

    def _baseline_failure(self) -> tuple[Status, Reason, str] | None:
        """Return the outcome if eager failed, otherwise None."""
        if "eager" in self.gated_arms:
            return Status.HARNESS_FAILED, Reason.EXCEPTION, "baseline"
        if self.eager_ended is False or "eager" in self.cause or "eager" in self.failed_arms:
            return Status.BASELINE_FAILED, Reason.EXCEPTION, "baseline"
        has_ended = (
            self.eager_ended
            or "compiled" in self.cause
            or not self.dtypes.keys().isdisjoint(("eager", "compiled"))
            or "eager" in self.latencies
            or self.num_finished_arms > 0
        )
        if has_ended:
            return None
        # The earliest logs record one cause for both arms, but report eager before compiling.
        reason = Reason.EXCEPTION if self.cause else Reason.CRASH
        return Status.BASELINE_FAILED, reason, "baseline"

    def _end_before_comparison(self) -> tuple[Status, Reason, str]:
        """Return the outcome of a sample whose compiled arm never printed its outputs' dtypes."""
        if "compiled" in self.gated_arms:
            return Status.HARNESS_FAILED, Reason.EXCEPTION, "run"
        if self.compiled_ended:
            return Status.RUN_FAILED, Reason.CRASH, "judge"
        if self.is_of_one_arm:  # it ran, but there was no reference to compare with
            return Status.HARNESS_FAILED, Reason.EXCEPTION, "judge"
        has_failed = self.compiled_ended is False or self.cause or self.error or self.failed_arms
        reason = Reason.EXCEPTION if has_failed else Reason.CRASH
        # An arm prints `[Profiling]` after its warm-up, which includes compilation.
        if len(self.trials) >= 2 or "compiled" in self.latencies:
            return Status.RUN_FAILED, reason, "run"
        return Status.COMPILE_FAILED, reason, "compile"

    def _mismatch(self) -> Reason | None:
        if not self.dtypes:  # the oldest logs contain no dtypes
            return Reason.COUNT if not self.compared("equal") else None
        eager, compiled = self.dtypes.get("eager", []), self.dtypes.get("compiled", [])
        shapes = self.shapes.get("eager"), self.shapes.get("compiled")
        if not eager or len(eager) != len(compiled):
            return Reason.COUNT
        if shapes[0] != shapes[1] or self.matches.get("Shape") is False:
            return Reason.SHAPE
        if eager != compiled or self.matches.get("DataType") is False:
            return Reason.DTYPE
        return None


def numbers(text: str) -> list[float]:
    """Parse whitespace-separated numbers; words that are not numbers become NaN."""
    values = []
    for word in text.split():
        try:
            values.append(float(word))
        except ValueError:
            values.append(math.nan)
    return values


def _shapes(text: str) -> list[list[int]] | None:
    value = parse_json(text)
    is_shapes = isinstance(value, list) and all(
        isinstance(shape, list) and all(isinstance(size, int) for size in shape) for shape in value
    )
    return value if is_shapes else None


def _statistics(text: str) -> dict[str, Any] | None:
    """Return the end-to-end times of an arm, or None if they are incomplete."""
    value = parse_json(text)
    times = value.get("e2e") if isinstance(value, dict) else None
    is_complete = isinstance(times, dict) and isinstance(times.get("mean"), int | float)
    return times if is_complete else None
