"""Worker that converts the sample of one row and checks the result."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import GraphNetError
from ..inputs import prepare_blocks
from ..isolation import RESULT_FILE, Reporter
from ..sample import Sample
from ..storage.mapping import read_job
from .dataflow import WRITERS
from .formats import find_format

PHASES = ("convert",)
EXACT_T = -99.0
"""The t of bit-equal outputs in a report, instead of -inf, which JSON lacks."""


def prepare() -> None:
    """Import torch, if it is installed, before jobs are forked."""
    if importlib.util.find_spec("torch") is not None:
        from . import programs  # noqa: F401 - most jobs need its imports
    prepare_blocks()


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Write the converted sample as the job's result, and report the t of its outputs.

    A graph that cannot be converted is reported with the reason, and has no result.
    """
    (row,), job = read_job(payload["row"])
    sample = Sample.from_row(row)
    form = find_format(job["format"])
    # Loaders infer the format from the suffix.
    path = directory / f"converted{form.suffix}"
    min_t = None
    try:
        if form.name in WRITERS:
            WRITERS[form.name](sample, path)
        else:
            from .programs import write_program

            min_t = write_program(sample, form.name, path)
    except GraphNetError as error:
        reporter.send({"problem": str(error)})
        return
    path.replace(directory / RESULT_FILE)
    reporter.send({"min_t": None if min_t is None else max(min_t, EXACT_T)})
