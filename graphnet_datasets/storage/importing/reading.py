"""The jobs of an import's workers: reading sample folders, and writing tables."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...analysis.columns import derived_columns, hash_columns
from ...analysis.splits import split_of_row
from ...analysis.subtasks import subtask
from ...analysis.tags import op_histogram, op_tags
from ...directory.reading import read_folder
from ...errors import GraphNetError
from ...frameworks import FRAMEWORK_VARIABLE, module
from ...isolation import Reporter
from ...sample import Sample
from ...schema import config_of, sample_to_row
from ..mapping import map_items
from ..plans import write_plans
from ..table import to_arrow

PHASES = ("read", "write")


def prepare() -> None:
    """Import the framework of the cost columns, if they are requested."""
    if framework := os.environ.get(FRAMEWORK_VARIABLE):
        with contextlib.suppress(GraphNetError):  # without it the cost columns are null
            module(framework, "costs")


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Read the folders of the payload, or write the tables of its plan."""
    if "plan" in payload:
        reporter.enter("write")
        write_plans(payload["plan"])
        return
    gc.disable()  # jobs are short, and collection would take a fifth of their time
    map_items(payload, directory, read_one)


def read_one(
    _row: Mapping[str, Any], job: Mapping[str, Any]
) -> tuple[list[pa.Table], dict[str, Any]]:
    """Return the row of a folder's sample, if it can be read, and notes about it."""
    folder = Path(job["folder"])
    try:
        sample = read_folder(folder)
        row = sample_to_row(sample, _columns(sample, job["has_costs"]))
        table = to_arrow([row])
    except GraphNetError as error:
        return [], {"error": str(error), "error_type": type(error).__name__}
    except OSError as error:
        reason = f"`{error.filename or folder}` cannot be read: {error.strerror or error}."
        return [], {"error": reason, "error_type": type(error).__name__}
    except Exception as error:  # any file must not stop the import of other folders
        reason = f"The reader failed, which is a bug in the reader: {error}"
        return [], {"error": reason, "error_type": type(error).__name__}
    place = [config_of(row), split_of_row(row)]
    identity = {name: row[name] for name in ("id", "num_ops", "signature_hash")}
    return [table], {"place": place, **identity}


def _columns(sample: Sample, has_costs: bool) -> dict[str, Any]:
    if has_costs:
        return derived_columns(sample)
    tags = {
        "subtask": subtask(sample),
        "op_tags": op_tags(sample),
        "op_histogram": op_histogram(sample),
    }
    return {**hash_columns(sample), **tags}
