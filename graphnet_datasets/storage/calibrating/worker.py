"""Calibrates the sample of one row, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...analysis.costs import measure_costs
from ...analysis.finite import explain_not_finite
from ...errors import GraphNetError, MemoryLimitError, TimeLimitError
from ...frameworks import calibrate
from ...isolation import RESULT_FILE, Reporter
from ...sample import Sample
from ...schema import sample_to_row
from ...schema.graphs import CALIBRATION_COLUMNS
from ...transforms.symbolic import at_smaller_sizes

PHASES = ("calibrate",)
SYMBOLS_TIME_S = 60.0
"""For finding what of a graph can be smaller, of that of all."""
MAX_OVER = 4
"""Times that a graph may take the operations which it was made smaller for."""


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Write the columns of calibration of the payload's row, or why there are none.

    `share` is that of its operations which the graph may take on the `device`, and
    `memory_limit_bytes` the memory.
    """
    del reporter  # there is one phase, in which each job begins
    with pa.OSFile(payload["row"]) as file, pa.ipc.open_file(file) as reader:
        (row,) = reader.read_all().to_pylist()
    sample, share = Sample.from_row(row), float(payload["share"])
    where = {name: payload[name] for name in ("device", "memory_limit_bytes")}
    try:
        found = (
            _calibrate(sample, where)
            if share >= 1
            else _calibrate_smaller(sample, where, share, row["flops"])
        )
    except (MemoryLimitError, TimeLimitError) as error:
        found = {"reason": str(error), "is_too_large": True}
    except GraphNetError as error:
        found = {"reason": str(error)}
    (directory / RESULT_FILE).write_text(json.dumps(found))


def _calibrate(sample: Sample, where: Mapping[str, Any]) -> dict[str, Any]:
    counted: list[tuple[int, int]] = []
    fitted = sample_to_row(
        calibrate(sample, **where, allow_unchecked_operators=True, on_end=counted.extend)
    )
    found = {name: fitted[name] for name in CALIBRATION_COLUMNS}
    text, is_meant = explain_not_finite(counted, sample)
    if not is_meant:
        found["reason"] = f"{text} As a baseline the graph fails, calibrated or not."
    return found


def _too_large(why: str) -> dict[str, Any]:
    return {"reason": f"it takes too many operations, and {why}", "is_too_large": True}


def _calibrate_smaller(
    sample: Sample, where: Mapping[str, Any], share: float, num_flops: int
) -> dict[str, Any]:
    """Return what is found at smaller sizes, by the numbers that the inputs have in the sample.

    Of a graph that cannot be run so it is what is found of the whole, if that is not far too large.
    """
    try:
        small = at_smaller_sizes(
            sample, share, time_limit_s=SYMBOLS_TIME_S, allow_unchecked_operators=True
        )
        costs = measure_costs(small)
        if costs is not None and costs.flops > MAX_OVER * share * num_flops:
            return _too_large(f"still takes {costs.flops / 1e9:,.1f} billion as `{small.id}`.")
        found = _calibrate(small, where)
    except GraphNetError as error:
        if MAX_OVER * share >= 1:
            return _calibrate(sample, where)
        return _too_large(f"cannot be run at smaller sizes: {error}")
    # Inputs that were symbols are gone from it, and the others in their order.
    places = [index for index, each in enumerate(sample.inputs) if each.role != "symbol"]
    return found | {
        "calibration": "shared",
        "calibrated_inputs": [
            each | {"input": places[each["input"]]} for each in found["calibrated_inputs"] or ()
        ]
        or None,
    }
