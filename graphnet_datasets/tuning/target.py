"""The properties of a task's target that decide where it can be measured."""

from __future__ import annotations

import dataclasses

from ..decoding import load_json
from ..errors import TuningError
from .task import Task


@dataclasses.dataclass(frozen=True, slots=True)
class TargetFacts:
    """The properties of a target that decide where it can be measured."""

    kind: str
    mcpu: str
    threads: int


def target_of(task: Task) -> TargetFacts:
    """Parse the properties of a task's target from its JSON.

    Raises:
        TuningError: the JSON is not a target.
    """
    try:
        fields = load_json(task.target_json, "a target")
        return TargetFacts(
            str(fields["kind"]), str(fields.get("mcpu", "")), int(fields.get("num-cores", 1))
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise TuningError(
            f"The target of the task `{task.task_name}` cannot be parsed: {error}. Extract the "
            "task again with `graphnet tasks`."
        ) from error


def foreign(target: TargetFacts, mcpu: str, kind: str = "llvm") -> str:
    """Return why a target cannot be measured on the processor `mcpu`, or "" if it can.

    `kind` is that of the language (see `languages`), by default TVM's.

    >>> foreign(TargetFacts("llvm", "znver4", 1), "znver4")
    ''
    >>> foreign(TargetFacts("cuda", "", 1), "znver4")
    'has a `cuda` target, but only CPU targets (`llvm`) can be measured'
    """
    if target.kind != kind:
        return f"has a `{target.kind}` target, but only CPU targets (`{kind}`) can be measured"
    if target.mcpu != mcpu:
        return f"is for the processor `{target.mcpu}`, but this machine has `{mcpu}`"
    return ""
