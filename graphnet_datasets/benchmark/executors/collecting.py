"""What a worker left in its directory, read before the directory goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...isolation import Outcome
from ..handover import FIRST, HandoverError, JudgedCall, judged_file, read_judged, read_outputs
from ..judging import judging
from ..judging.correctness import Output


def read_run(run: judging.Run, outcome: Outcome, directory: Path) -> None:
    """Take in the outputs of a run that has some; what cannot be read fails it."""
    if not run.has_outputs:
        return
    messages = outcome.merged()
    try:
        run.first = read_outputs(directory / FIRST, messages.get(f"outputs {FIRST}"))
        run.calls = read_judged(messages.get("judged"))
        sets = {(call.set_index, call.start is None) for call in run.calls}
        if len(sets) != len(run.calls):  # drawn, and no set twice
            raise HandoverError("Two of the calls to be judged had the same inputs.")
        run.judged = read_judged_outputs(directory, messages, run.calls)
    except HandoverError as error:
        run.fail_protocol(str(error))


def read_judged_outputs(
    directory: Path, messages: Mapping[str, Any], calls: Sequence[JudgedCall]
) -> list[list[Output]]:
    """Return the outputs of each judged call.

    Raises:
        HandoverError: the files do not hold what the messages say.
    """
    return [
        read_outputs(directory / name, messages.get(f"outputs {name}"), call.start)
        for name, call in zip(map(judged_file, range(len(calls))), calls, strict=True)
    ]
