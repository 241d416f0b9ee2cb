"""Calibrates the sample of one row, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...analysis.finite import explain_not_finite
from ...errors import GraphNetError
from ...frameworks import calibrate
from ...isolation import RESULT_FILE, Reporter
from ...sample import Sample
from ...schema import sample_to_row
from ...schema.graphs import CALIBRATION_COLUMNS

PHASES = ("calibrate",)


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Write the columns of calibration of the payload's row, or why there are none."""
    del reporter  # there is one phase, in which each job begins
    with pa.OSFile(payload["row"]) as file, pa.ipc.open_file(file) as reader:
        (row,) = reader.read_all().to_pylist()
    counted: list[tuple[int, int]] = []
    sample = Sample.from_row(row)
    try:
        fitted = sample_to_row(
            calibrate(sample, allow_unchecked_operators=True, on_end=counted.extend)
        )
        found = {name: fitted[name] for name in CALIBRATION_COLUMNS}
        text, is_meant = explain_not_finite(counted, sample)
        if not is_meant:
            found["reason"] = f"{text} As a baseline the graph fails, calibrated or not."
    except GraphNetError as error:
        found = {"reason": str(error)}
    (directory / RESULT_FILE).write_text(json.dumps(found))
