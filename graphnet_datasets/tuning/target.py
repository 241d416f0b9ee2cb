"""What of a task's target decides where it can be measured, out of its text."""

from __future__ import annotations

import dataclasses

from ..decoding import load_json
from ..errors import TuningError
from .task import Task


@dataclasses.dataclass(frozen=True, slots=True)
class TargetFacts:
    """What of a target decides where it can be measured."""

    kind: str
    mcpu: str
    threads: int


def target_of(task: Task) -> TargetFacts:
    """Return the facts of a task's target, out of its text.

    Raises:
        TuningError: the text is no target.
    """
    try:
        fields = load_json(task.target_json, "a target")
        return TargetFacts(
            str(fields["kind"]), str(fields.get("mcpu", "")), int(fields.get("num-cores", 1))
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise TuningError(
            f"The target of the task `{task.task_name}` cannot be read: {error}."
        ) from error


def foreign(target: TargetFacts, mcpu: str) -> str:
    """Say why tasks of a target cannot be measured on a processor that LLVM calls `mcpu`, or "".

    >>> foreign(TargetFacts("llvm", "znver4", 1), "znver4")
    ''
    >>> foreign(TargetFacts("cuda", "", 1), "znver4")
    'is for `cuda`, and only tasks for processors (`llvm`) can be measured'
    """
    if target.kind != "llvm":
        return f"is for `{target.kind}`, and only tasks for processors (`llvm`) can be measured"
    if target.mcpu != mcpu:
        return f"is for the processor `{target.mcpu}`, and this one is `{mcpu}`"
    return ""
