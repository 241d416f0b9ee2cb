"""Classes of failed captures, for statistics."""

from __future__ import annotations

import re

_REASON = re.compile(r"(?P<how>\w+ in \w+)(?:: (?P<kind>[\w.]+)(?P<rest>.*))?", re.DOTALL)


def stage_of(reason: str) -> str:
    """Return the phase in a reason: `build`, `capture` or `write`.

    >>> stage_of("timeout in capture"), stage_of("lost two workers")
    ('capture', 'capture')
    """
    match = _REASON.match(reason)
    return match["how"].rpartition(" ")[2] if match else "capture"


def reason_class(reason: str) -> str:
    """Return the class of failures that a reason belongs to.

    >>> reason_class("error in capture: torch.fx.X.GuardOnDataDependentSymNode Could not guard")
    'capture: GuardOnDataDependentSymNode'
    >>> reason_class("timeout in capture")
    'capture: timeout'
    """
    match = _REASON.match(reason)
    if match is None:
        return "unknown"
    ending, _, phase = match["how"].partition(" in ")
    kind = (match["kind"] or "").rpartition(".")[2]
    if kind == "CaptureError":
        rest = match["rest"]
        kind = next((name for part, name in _CAPTURE_ERRORS if part in rest), kind)
    return f"{phase}: {kind if ending == 'error' and kind else ending.replace('_', ' ')}"


_CAPTURE_ERRORS = (
    ("breaks into", "the graph breaks"),
    ("which is not", "an operator is not in the table"),
    ("cannot be traced", "dynamo cannot trace it"),
)
