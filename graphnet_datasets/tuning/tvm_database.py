"""Databases of TVM, `JSONDatabase`: two files of lines, of workloads and of records.

For isolated processes: both are parsed by TVM.
"""

from __future__ import annotations

import base64
import collections
import importlib
import json
import os
from pathlib import Path
from typing import Any

from ..atomic import replaced
from ..decoding import load_json, read_bytes
from ..errors import TuningError, UnverifiedProgramError
from .candidate import Candidate, Origin
from .extract import (
    argument_types,
    load_target,
    load_workload,
    make_task,
    target_text,
    workload_text,
)
from .intrinsics import import_meta_schedule
from .measurement import Measurement, TrialStatus
from .records import TuningRecords
from .task import Task
from .verifying import verify_trace


def write_tvm_database(
    found: TuningRecords, directory: str | os.PathLike[str], *, trust_remote_code: bool = False
) -> Path:
    """Write records as a `JSONDatabase` of TVM: two files of lines, which `work_dir` takes.

    Correct records come with all repetitions, in seconds.

    Raises:
        TuningError: a workload or a target cannot be read.
    """

    ms = import_meta_schedule()
    places: dict[str, int] = {}
    workloads: list[str] = []
    records: list[str] = []
    for row in found.measurements:
        task = found.tasks[row.task_id]
        if not row.is_ok:
            continue
        if row.task_id not in places:
            workload = load_workload(task.workload_json, trust_remote_code=trust_remote_code)
            load_target(task.target_json, trust_remote_code=trust_remote_code)
            places[row.task_id] = len(workloads)
            workloads.append(json.dumps(ms.database.Workload(workload).as_json()))
        trace = json.loads(row.trace_json) if trust_remote_code else verify_trace(row.trace_json)
        types = [["TENSOR", dtype, list(shape)] for shape, dtype in _types_of(task)]
        seconds = [each / 1e3 for each in row.times_ms]
        body = [trace, seconds, json.loads(task.target_json), types]
        records.append(json.dumps([places[row.task_id], body]))
    root = Path(directory)
    root.mkdir(parents=True, exist_ok=True)
    for name, lines in (
        ("database_workload.json", workloads),
        ("database_tuning_record.json", records),
    ):
        with replaced(root / name) as temporary, temporary.open("w") as file:
            file.writelines(f"{line}\n" for line in lines)
    return root


def _types_of(task: Task) -> list[tuple[tuple[int, ...], str]]:
    return list(zip(task.arg_shapes, task.arg_dtypes, strict=True))


def read_tvm_database(
    directory: str | os.PathLike[str], *, trust_remote_code: bool = False
) -> TuningRecords:
    """Return the records of a `JSONDatabase` of TVM as tasks and measurements.

    Lines that cannot be read, that name no workload, or have no times are left out by count, as are
    those that the verifier refuses unless `trust_remote_code`; times become repetitions.

    Raises:
        TuningError: there is no such database.
    """

    import_meta_schedule()
    root = Path(directory)
    files = [root / "database_workload.json", root / "database_tuning_record.json"]
    missing = [each for each in files if not each.is_file()]
    if missing:
        raise TuningError(f"There is no database of TVM in `{directory}`: no `{missing[0].name}`.")
    skipped: collections.Counter[str] = collections.Counter()
    workloads: list[Any] = []
    for line in read_bytes(files[0]).splitlines():
        try:
            text = _workload_of_line(load_json(line, files[0]))
            workloads.append(load_workload(text, trust_remote_code=trust_remote_code))
        except UnverifiedProgramError as error:
            workloads.append(None)
            skipped[str(error)] += 1
        except Exception:  # whatever TVM raises
            workloads.append(None)
            skipped["its workload cannot be read"] += 1
    tasks: dict[str, Task] = {}
    rows: list[Measurement] = []
    for number, line in enumerate(read_bytes(files[1]).splitlines()):
        try:
            place, (trace, seconds, target_data, _) = load_json(line, files[1])
            workload = workloads[place]
            if not trust_remote_code:
                verify_trace(json.dumps(trace))
            target = load_target(json.dumps(target_data), trust_remote_code=trust_remote_code)
            times = tuple(1e3 * float(each) for each in seconds or ())
        except UnverifiedProgramError as error:
            skipped[str(error)] += 1
            continue
        except Exception:  # whatever is wrong with the line, or TVM raises
            skipped["it is not a record"] += 1
            continue
        if workload is None or not times or not all(0 < each < 1e10 for each in times):
            skipped["it has no workload, or no times"] += 1
            continue
        task = task_of(workload, target_text(target))
        tasks.setdefault(task.task_id, task)
        text = json.dumps(trace, separators=(",", ":"))
        rows.append(
            Measurement.of(
                Candidate(task.task_id, text, Origin.RANDOM),
                TrialStatus.OK,
                times_ms=times,
                repeat=len(times),
                record_id=f"{root.name}/{number}",
                tuner="tvm",
                trial=number,
            )
        )
    return TuningRecords(tasks, tuple(rows), dict(skipped))


def _workload_of_line(line: Any) -> str:
    """Return the JSON of a workload in a line `[hash, content]` of a database.

    The content is base64 of 8 bytes of length, least significant first, and the text.

    Raises:
        ValueError: it is not written so.
    """
    content = base64.b64decode(line[1], validate=True)
    size = int.from_bytes(content[:8], "little")
    if size != len(content) - 8:
        raise ValueError("The length of a workload is not that of its text.")
    return content[8:].decode()


def task_of(workload: Any, target_json: str) -> Task:
    """Return the task of a workload whose graph is not known."""
    text, types = workload_text(workload), argument_types(workload)
    return make_task(workload, _block_names(workload), target_json, text, types)


def _block_names(workload: Any) -> str:

    tvm = importlib.import_module("tvm")
    schedule = tvm.s_tir.Schedule(workload)
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    return "_".join(str(schedule.get(each).name_hint) for each in blocks)[:200]
