"""Verdicts on single candidates: functions and modules that replace the graph of one sample."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..compilers import compiler_of_object
from ..compilers.replacement import CALL_MARK, is_replacement
from ..errors import RunError, raises_only
from ..sample import Sample
from ..schema import Reason, sample_from_row
from ..scores import Outcome
from ..scores.summary_text import describe_run
from ..scores.variants import TOLERANCE
from ..scores.warnings import IMPOSSIBLE, first_of
from ..storage.selection import select_one
from ..terminal import printable_line
from .runner import run_records
from .settings import Settings
from .solution_files import SUFFIXES, read_solution, reference_of_file, reference_of_text

NUM_SIZES = 4
"""Number of calls with other sizes and scalar inputs if the caller does not set it."""
MAX_MESSAGE_LINES = 12
"""Maximum number of lines of an error message that are printed."""
CHEATS: Mapping[str, str] = {
    Reason.CONSTANT: "a stored answer",
    Reason.STALE: "an answer to an earlier call",
    Reason.MUTATION: "a write to an input or weight that eager only reads",
    Reason.TAMPERING: "tampering with the measurement",
}
"""Names of the cheats that the judge detects, by the reason in the record."""
LOW_PRECISION = "a precision below that of the graph"
"""The cheat of outputs that are right at t = -3 but not at the tolerance of a workload."""
_OWN_LINE = re.compile(r"  \S+\.py:\d+(?: in \S+)?: ")


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """The verdict on a candidate for one sample. `print` shows it as `graphnet check` does.

    `verdict` is the line of `graphnet run`. `cheat` names the cheat that the judge detected, or is
    "". `own_lines` are the lines of the candidate's source in the traceback of its error. `record`
    is the row of `RUNS_SCHEMA` from which everything else follows. Outputs must be right at
    `tolerance_t`.
    """

    sample_id: str
    candidate: str
    outcome: Outcome
    verdict: str
    cheat: str
    own_lines: tuple[str, ...]
    record: Mapping[str, Any]
    tolerance_t: float = TOLERANCE

    @property
    def is_right(self) -> bool:
        """True if the outputs are right in all calls."""
        return self.outcome is Outcome.RIGHT

    @property
    def speedup(self) -> float | None:
        """The speedup over eager, or None if the candidate is not right."""
        return self.record["speedup"] if self.is_right else None

    @property
    def wrong_elements(self) -> list[dict[str, Any]]:
        """The first wrong element and the one with the largest error; see `WRONG_FIELDS`."""
        return self.record["wrong_elements"] or []

    @property
    def workloads(self) -> list[dict[str, Any]]:
        """The calls with other sizes and scalar inputs; see `VARIED_FIELDS`."""
        return self.record["varied_calls"] or []

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a JSON-compatible mapping."""
        names = ("status", "reason", "speedup", "speedup_low", "speedup_high", "min_t")
        names += ("error_type", "error_message", "changed_state", "is_noisy", "other_cpu_share")
        return {
            "sample_id": self.sample_id,
            "candidate": self.candidate,
            "outcome": str(self.outcome),
            "verdict": " ".join(self.verdict.split()),
            "cheat": self.cheat,
            **{name: self.record[name] for name in names},
            "wrong_elements": self.wrong_elements,
            "workloads": self.workloads,
        }

    def lines(self) -> list[str]:
        """Return the lines that describe the verdict; the first is that of `graphnet run`."""
        lines = [f"{self.sample_id}  {self.candidate}  {self.verdict}"]
        lines += [f"  {_describe_call(call)}" for call in self.workloads]
        if self.outcome in (Outcome.FAILED, Outcome.WRONG) and self.record["error_message"]:
            message, _ = _split_message(self.record)
            if len(message) > 1 or message[0] not in lines[0]:
                lines += [f"  {line}" for line in message[:MAX_MESSAGE_LINES]]
        lines += self.own_lines
        if self.wrong_elements:
            lines.append(_describe_element(self.wrong_elements[0]))
        if self.cheat:
            lines.append(f"Cheat: {self.cheat}.")
        changes = [text for text in self.record["changed_state"] if text.endswith("(in a call)")]
        lines += [f"Changed outside the graph: {change}." for change in changes]
        return [printable_line(line) for line in lines]

    def __str__(self) -> str:
        return "\n".join(self.lines())


@raises_only(RunError)
def check(
    sample: Sample | Mapping[str, Any] | str | os.PathLike[str],
    candidate: str | os.PathLike[str] | Callable[..., Any],
    *,
    device: str = "cpu",
    out: str | os.PathLike[str] | None = None,
    source: str | os.PathLike[str] = "graphnet",
    settings: Settings | None = None,
    **changes: Any,
) -> CheckResult:
    """Judge and time a function or module that replaces the graph of one sample.

    The candidate is imported and called only in a confined process, and judged like a compiler: on
    new inputs in each call, against outputs that another process computes. If the sample has
    symbolic sizes or scalar inputs, the candidate is also called with others.

    A function takes the inputs of the sample in order, weights included, as `graphnet show`
    prints them. If its parameters are names of inputs (`input_0`, `parameter_0`), it takes only
    these. A class is instantiated once. The parameters of its constructor are names of weights, and
    its `forward` takes the remaining inputs. Weights are the tensors of the graph itself, which
    only graphs that write to them may change.

    Args:
        sample: a sample, a row of the `graphs` table, an id or a path.
        candidate: the path of a Python file, `file.py:name`, a function or a class. Without a name,
            the file's only public function or class is chosen, or the one named `candidate`.
        device: `cpu`, `cuda` or `cuda:N`.
        out: directory of the record; with None the record is only returned.
        source: the dataset in which an id is looked up.
        settings: how to run the sample; `changes` are settings by name, as in `run`.

    Raises:
        CandidateError: the candidate's file does not exist or offers no single candidate.
        DatasetNotFoundError: there is no such sample, or several samples are selected.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> matrix = Input("input", Value("float32", (64, 64)))
    >>> relu = Sample("example/relu", "torch", "other", (matrix,),
    ...     (Op("torch.relu", (Ref(0),)),), (Ref(1),))
    >>> def candidate(x):
    ...     return (x.clamp(min=0),)
    >>> check(relu, candidate, has_oracle=False, has_profile=False).is_right
    True
    """
    name = os.fspath(sample) if isinstance(sample, os.PathLike) else sample
    row = select_one(name, dataset=source)
    checked = sample_from_row(row)
    chosen = dataclasses.replace(settings or Settings(), **changes)
    has_scalars = any(graph_input.role == "scalar" for graph_input in checked.inputs)
    if not chosen.num_variations and (checked.is_dynamic or has_scalars):
        chosen = dataclasses.replace(chosen, num_variations=NUM_SIZES)
    reference = reference_of_candidate(candidate)
    records = run_records(
        [row], reference, device, out, source=source, settings=chosen, on_record=lambda _: None
    )
    (record,) = records.to_pylist()
    return describe_check(record)


def reference_of_candidate(candidate: str | os.PathLike[str] | Callable[..., Any]) -> str:
    """Return the reference by which a worker finds a candidate.

    Raises:
        CandidateError: The file does not exist or offers no single candidate.
        CompilerError: The source of a function cannot be read.
    """
    if not isinstance(candidate, str | os.PathLike):
        return compiler_of_object(candidate, is_replacement=True) + CALL_MARK
    text = os.fspath(candidate)
    if is_replacement(text):
        return text
    if ":" in text and not Path(text).expanduser().exists():
        return text + CALL_MARK
    path = Path(os.path.realpath(Path(text).expanduser()))
    if path.suffix in SUFFIXES and path.suffix != ".py":
        return reference_of_text(*read_solution(path), path.name)
    return reference_of_file(path)


def describe_check(record: Mapping[str, Any], tolerance_t: float = TOLERANCE) -> CheckResult:
    """Return the verdict that a run record of a candidate contains.

    Outputs that are right at t = -3 but not at `tolerance_t` are wrong.
    """
    message, own_lines = _split_message(record)
    outcome, verdict = describe_run({**record, "error_message": "\n".join(message)})
    cheat = CHEATS.get(record["reason"] or "", "")
    if not cheat and first_of(IMPOSSIBLE, record):
        cheat = "a time that the work cannot take"
    if outcome is Outcome.RIGHT and (record["min_t"] or 0.0) > tolerance_t:
        outcome, cheat = Outcome.WRONG, cheat or LOW_PRECISION
        verdict = f"WRONG   at t = {tolerance_t:g}: right only at t = {record['min_t']:.1f}"
    return CheckResult(
        sample_id=record["sample_id"],
        candidate=_candidate_name(record["compiler"]),
        outcome=outcome,
        verdict=verdict,
        cheat=cheat,
        own_lines=tuple(own_lines),
        record={**record, "changed_state": record["changed_state"] or []},
        tolerance_t=tolerance_t,
    )


def _candidate_name(reference: str) -> str:
    """Return the file and the function of a reference; the wrappers of other languages are hidden.

    >>> _candidate_name("/cache/0f/mine.cpp.py:candidate()"), _candidate_name("/home/a.py:relu")
    ('mine.cpp', 'a.py:relu')
    """
    module, _, name = reference.rpartition(":")
    file_name = Path(module).name
    wrapped = file_name.removesuffix(".py")
    is_wrapper = Path(wrapped).suffix in SUFFIXES
    return wrapped if is_wrapper else f"{file_name}:{name.removesuffix(CALL_MARK)}"


def _split_message(record: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the lines of an error's message, and those that quote the candidate's source."""
    lines = (record["error_message"] or "").splitlines()
    own_lines = [line for line in lines if _OWN_LINE.match(line)]
    return [line for line in lines if line not in own_lines], own_lines


def _describe_call(call: Mapping[str, Any]) -> str:
    values = {**json.loads(call["sizes"]), **json.loads(call["scalars"])}
    where = ", ".join(f"{name} = {value:g}" for name, value in values.items())
    word = {"ok": "right", "wrong": "WRONG", "stale": "WRONG"}.get(call["verdict"], call["verdict"])
    return f"{where:32}  {word:6}  {call['message'] or ''}".rstrip()


def _describe_element(element: Mapping[str, Any]) -> str:
    index = f" {element['index']}" if element["index"] else ""
    return (
        f"First wrong element: output {element['output']}{index} is {element['candidate']}, "
        f"expected {element['baseline']} (inputs of seed {element['seed']})."
    )
