"""Calibration of the sample of one row, in an isolated process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...analysis.costs import measure_costs
from ...analysis.finite import explain_not_finite
from ...errors import CalibrationError, GraphNetError, MemoryLimitError, TimeLimitError
from ...frameworks import FRAMEWORK_VARIABLE, calibrate, measure_signal, module
from ...frameworks.runtime import make_runtime
from ...inputs import prepare_blocks
from ...inputs.sensitivity import SignalFigures
from ...isolation import Reporter
from ...sample import Sample
from ...schema import sample_to_row
from ...schema.graphs import CALIBRATION_COLUMNS
from ...transforms.symbolic import at_smaller_sizes
from ..mapping import map_items

PHASES = ("calibrate",)
SYMBOLS_TIME_S = 60.0
"""Seconds of the job's time limit for finding symbolic sizes to reduce."""
MAX_OVER = 4
"""Factor by which a reduced graph may exceed its target number of operations."""


def prepare() -> None:
    """Import the framework and the modules that all jobs need."""
    framework = os.environ[FRAMEWORK_VARIABLE]
    make_runtime(framework, "cpu", 1)  # jobs run in parallel; sums keep their order
    module(framework, "runtime").import_all(with_fakes=True)
    module(framework, "calibration")
    prepare_blocks()


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Calibrate rows."""
    del reporter  # every job starts in the only phase
    map_items(payload, directory, calibrate_row)


def calibrate_row(
    row: Mapping[str, Any], job: Mapping[str, Any]
) -> tuple[tuple[()], dict[str, Any]]:
    """Return the calibration columns of a row as notes, or the reason of a failure.

    `share` is the share of its operations that the graph may use on the `device`, and
    `memory_limit_bytes` the memory limit.
    """
    sample, share = Sample.from_row(row), float(job["share"])
    where = {name: job[name] for name in ("device", "memory_limit_bytes")}
    try:
        result = (
            _calibrate(sample, where)
            if share >= 1
            else _calibrate_smaller(sample, where, share, row["flops"])
        )
    except (MemoryLimitError, TimeLimitError) as error:
        result = {"reason": str(error), "is_too_large": True}
    except GraphNetError as error:
        result = {"reason": str(error)}
    return (), result


def _calibrate(sample: Sample, where: Mapping[str, Any]) -> dict[str, Any]:
    counted: list[tuple[int, int]] = []
    fitted = calibrate(sample, **where, allow_unchecked_operators=True, on_end=counted.extend)
    try:
        figures = measure_signal(fitted, **where, allow_unchecked_operators=True)
    except CalibrationError:  # an operator fails on other data
        figures = SignalFigures(None, None, "fails on other data")
    row = sample_to_row(fitted) | figures.columns()
    result = {name: row[name] for name in CALIBRATION_COLUMNS}
    text, is_meant = explain_not_finite(counted, sample)
    if not is_meant:
        result["reason"] = f"{text} The graph fails as a baseline, calibrated or not."
    return result


def _too_large(explanation: str) -> dict[str, Any]:
    return {"reason": f"it takes too many operations, and {explanation}", "is_too_large": True}


def _calibrate_smaller(
    sample: Sample, where: Mapping[str, Any], share: float, num_flops: int
) -> dict[str, Any]:
    """Return the calibration at smaller sizes, mapped to the input positions of the sample.

    If the graph cannot be run at smaller sizes, and is not far too large, calibrate the whole.
    """
    try:
        small = at_smaller_sizes(
            sample, share, time_limit_s=SYMBOLS_TIME_S, allow_unchecked_operators=True
        )
        costs = measure_costs(small)
        if costs is not None and costs.flops > MAX_OVER * share * num_flops:
            return _too_large(f"still takes {costs.flops / 1e9:,.1f} billion as `{small.id}`.")
        result = _calibrate(small, where)
    except GraphNetError as error:
        if MAX_OVER * share >= 1:
            return _calibrate(sample, where)
        return _too_large(f"cannot be run at smaller sizes: {error}")
    # Symbol inputs are absent from the smaller sample; the others keep their order.
    places = [index for index, value in enumerate(sample.inputs) if value.role != "symbol"]
    moved = {
        name: [record | {"input": places[record["input"]]} for record in result[name] or ()] or None
        for name in ("calibrated_inputs", "signals")
    }
    return result | {"calibration": "shared"} | moved
