"""Calibration of many rows, each in an isolated process with limits on time and memory."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...atomic import temporary_directory
from ...errors import RunError
from ...frameworks import FRAMEWORK_VARIABLE, framework_named
from ...frameworks.input_limits import memory_limit
from ...frameworks.runtime import find_device_problem
from ...isolation import Limits, LocalPool, Work, num_processors
from ..mapping import Item, ResumableMap, digest_of
from ..staging import Staging
from .worker import PHASES

GIB = 2**30
MAX_INPUT_BYTES = 2 * GIB
"""Default limit of the inputs' size for calibration."""

MAX_DEVICE_JOBS = 4
"""Default limit of processes that share a GPU's memory; each has only a few operators in flight."""

CALIBRATION_LIMITS = Limits(phase_timeouts_s={"calibrate": 900.0}, memory_bytes=12 * GIB)


@dataclasses.dataclass(frozen=True)
class CalibratedRow:
    """A row with its position, and the reason if it has no calibration.

    `is_too_large` is true if the row was not run, or not completely, because of its size. `columns`
    contains the columns that the calibration has filled.
    """

    place: int
    row: Mapping[str, Any]
    reason: str
    is_too_large: bool = False
    columns: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])


def calibrate_rows(
    rows: Sequence[Mapping[str, Any]],
    *,
    device: str = "cpu",
    jobs: int | None = None,
    max_input_bytes: int = MAX_INPUT_BYTES,
    max_flops: float = math.inf,
    limits: Limits = CALIBRATION_LIMITS,
    staging: Staging | None = None,
) -> Iterator[CalibratedRow]:
    """Yield rows of the `graphs` table with calibration columns, in order of completion.

    Rows with a calibration are returned unchanged. Graphs with more than `max_flops` operations are
    run at smaller sizes, if they have symbolic sizes, and the result is marked `shared`
    (`transforms.symbolic.at_smaller_sizes`). A row whose inputs exceed `max_input_bytes`, or whose
    graph fails or exceeds the limits, is returned unchanged with the reason. Each framework has
    `jobs` processes (default: one per processor, at most four on a GPU). Torch graphs run on the
    `device`, graphs of other frameworks on the CPU. Finished rows are stored in `staging`, from
    which an equal call resumes.

    Raises:
        SchemaError: a row does not match the columns of the table.
        UnknownFrameworkError: the framework of a row does not exist.
        MissingExtraError: the framework of a row is not installed.
        RunError: the processes cannot be started, or the device does not exist.
    """
    waiting: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        if row.get("calibration"):
            yield CalibratedRow(index, row, "")
        elif (row.get("input_bytes") or 0) > max_input_bytes:
            size = (row["input_bytes"] or 0) / GIB
            reason = f"its inputs take {size:.1f} GiB; {max_input_bytes / GIB:.1f} are allowed"
            yield CalibratedRow(index, row, reason, is_too_large=True)
        else:
            waiting.setdefault(str(row.get("framework")), []).append(index)
    for framework in map(framework_named, waiting):
        if not framework.is_installed:
            raise framework.missing("Calibrating its graphs")
        if problem := find_device_problem(framework.name, _device_for(framework.name, device)):
            raise RunError(
                f"Cannot calibrate on the device `{device[:40]}`: {problem}. Choose another device."
            )
    with contextlib.ExitStack() as stack:
        if staging is None:
            folder = stack.enter_context(temporary_directory("graphnet-calibrate-"))
            staging = Staging(Path(folder) / "rows", "calibration")
        mapping = ResumableMap(staging, {"max_flops": max_flops}, limits)
        for framework, indices in waiting.items():
            target_device = _device_for(framework, device)
            environment = {FRAMEWORK_VARIABLE: framework_named(framework).name}
            work = Work(f"{__package__}.worker", PHASES, limits, environment)
            items = _items(rows, indices, target_device, max_flops, limits)
            num_jobs = jobs or _default_jobs(target_device)
            with contextlib.closing(LocalPool(work, num_jobs)) as pool:
                for result in mapping.run(items, pool):
                    index, columns = int(result.name), dict(result.notes)
                    is_too_large = columns.pop("is_too_large", bool(result.lost))
                    reason = columns.pop("reason", result.lost)
                    row = {**rows[index], **columns}
                    yield CalibratedRow(index, row, reason, is_too_large, columns)
        mapping.report_ignored()


def _device_for(framework: str, device: str) -> str:
    return device if framework == "torch" else "cpu"


def _default_jobs(device: str) -> int:
    return num_processors() if device == "cpu" else min(num_processors(), MAX_DEVICE_JOBS)


def _items(
    rows: Sequence[Mapping[str, Any]],
    indices: list[int],
    device: str,
    max_flops: float,
    limits: Limits,
) -> Iterator[Item]:
    memory = None  # on a GPU, the free memory at the start of a job
    if device == "cpu":
        memory = min(memory_limit(limits.memory_bytes), memory_limit(None))
    for index in indices:
        share = min(1.0, max_flops / (rows[index].get("flops") or 1))
        options = {"share": share, "device": device, "memory_limit_bytes": memory}
        # The memory of the machine may differ at the next call, which continues this one.
        digest = digest_of([sorted(rows[index].items()), share, device])
        yield Item(str(index), digest, rows[index], options)
