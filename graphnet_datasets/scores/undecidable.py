"""Records whose outputs allow no verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..schema import Status
from .variants import TOLERANCE

UNDECIDABLE = "undecidable"
"""The reason for excluding a run whose outputs allow no verdict from N."""
NONDETERMINISTIC = "Eager differs from itself by as much as from zeros."
_ROUNDING = 1e-8
"""Precision of tolerances."""


def undecidable_reason(record: Mapping[str, Any]) -> str | None:
    """Return why no verdict about a record is possible, as a sentence, or None.

    The sentence is the recorded `undecidable_reason`, or it follows from the tolerances: outputs
    that pass at t = -3, but at no t at which a stored answer fails, may be right or stored, and so
    may outputs that differ from eager's where a trivial answer is bit-equal. Outputs no nearer to
    eager's than zeros or the mean are wrong, not undecidable.

    >>> record = {"status": "ok", "min_t": -4.0, "null_t": -4.4, "stale_t": -4.4}
    >>> undecidable_reason(record)
    'The outputs pass from t = -4 on, and an answer stored from other inputs from t = -4.4 on.'
    >>> undecidable_reason(record | {"min_t": -5.0}), undecidable_reason(record | {"min_t": -2.0})
    (None, None)
    """
    if record.get("undecidable_reason"):
        return str(record["undecidable_reason"])
    if record["status"] != Status.OK:
        return None
    min_t, null_t, stale_t = (record.get(name) for name in ("min_t", "null_t", "stale_t"))
    if min_t is None or not -math.inf < min_t <= TOLERANCE:
        return None
    if null_t == -math.inf:
        return (
            f"The outputs pass from t = {min_t:.3g} on, but a trivial answer is bit-equal to "
            "eager's outputs, so passing says nothing."
        )
    if stale_t is None or min_t < stale_t - _ROUNDING or min_t >= _zeros_t(record) - _ROUNDING:
        return None
    return (
        f"The outputs pass from t = {min_t:.3g} on, and an answer stored from other inputs from "
        f"t = {stale_t:.3g} on."
    )


def vacuous_reason(record: Mapping[str, Any]) -> str:
    """Return why passing at t = -3 says nothing about a record whose outputs pass.

    >>> vacuous_reason({"eager_t": -2.0})
    'Eager itself agrees with float64 only from t = -2 on.'
    """
    eager_t = record.get("eager_t")
    if eager_t is not None and eager_t > TOLERANCE:
        return f"Eager itself agrees with float64 only from t = {eager_t:.3g} on."
    return "Zeros or a stored answer pass wherever eager itself agrees with float64."


def _zeros_t(record: Mapping[str, Any]) -> float:
    """Return the smallest t at which zeros or means pass for all outputs, by the outputs' rows."""
    outputs = record.get("outputs") or []
    if any(output["null_t"] is None for output in outputs):
        return math.inf
    if not outputs:
        null_t = record.get("null_t")
        return math.inf if null_t is None or null_t >= record["stale_t"] - _ROUNDING else null_t
    controls = ("null_t", "null_mean_t")
    return max(
        min(output[name] for name in controls if output.get(name) is not None) for output in outputs
    )
