"""Calibrates the sample of one row, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...errors import GraphNetError
from ...frameworks import calibrate
from ...isolation import RESULT_FILE, Reporter
from ...sample import Sample
from ...schema import sample_to_row

PHASES = ("calibrate",)


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Write the columns of calibration of the payload's row, or why there are none."""
    del reporter  # there is one phase, in which each job begins
    with pa.OSFile(payload["row"]) as file, pa.ipc.open_file(file) as reader:
        (row,) = reader.read_all().to_pylist()
    try:
        fitted = sample_to_row(calibrate(Sample.from_row(row), allow_unchecked_operators=True))
        found = {name: fitted[name] for name in ("calibration", "calibrated_inputs")}
    except GraphNetError as error:
        found = {"reason": str(error)}
    (directory / RESULT_FILE).write_text(json.dumps(found))
