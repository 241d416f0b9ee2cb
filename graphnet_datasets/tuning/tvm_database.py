"""TVM databases (`JSONDatabase`): JSON lines of workloads and of records.

Use this module only in isolated processes, because TVM parses the contents.
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
    tuning_records: TuningRecords,
    directory: str | os.PathLike[str],
    *,
    trust_remote_code: bool = False,
) -> Path:
    """Write records as a TVM `JSONDatabase`, whose two files form a `work_dir`.

    Only correct records are written, with all repetitions in seconds.

    Raises:
        TuningError: a workload or target cannot be parsed.
    """

    ms = import_meta_schedule()
    places: dict[str, int] = {}
    workloads: list[str] = []
    records: list[str] = []
    for row in tuning_records.measurements:
        task = tuning_records.tasks[row.task_id]
        if not row.is_ok:
            continue
        if row.task_id not in places:
            workload = load_workload(task.workload_json, trust_remote_code=trust_remote_code)
            load_target(task.target_json, trust_remote_code=trust_remote_code)
            places[row.task_id] = len(workloads)
            workloads.append(json.dumps(ms.database.Workload(workload).as_json()))
        trace = json.loads(row.trace_json) if trust_remote_code else verify_trace(row.trace_json)
        types = [["TENSOR", dtype, list(shape)] for shape, dtype in _types_of(task)]
        seconds = [time_ms / 1e3 for time_ms in row.times_ms]
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
    """Return the records of a TVM `JSONDatabase` as tasks and measurements.

    Times become repetitions. Lines that cannot be parsed, lack a workload or have no times are
    skipped and counted, and so are lines that the verifier rejects unless `trust_remote_code`.

    Raises:
        TuningError: the database does not exist.
    """

    import_meta_schedule()
    root = Path(directory)
    files = [root / "database_workload.json", root / "database_tuning_record.json"]
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise TuningError(
            f"`{directory}` is not a TVM database: it has no `{missing[0].name}`. Pass the "
            "`work_dir` of a `JSONDatabase`."
        )
    skipped: collections.Counter[str] = collections.Counter()
    workloads: list[Any] = []
    for line in read_bytes(files[0]).splitlines():
        try:
            text = _workload_of_line(load_json(line, files[0]))
            workloads.append(load_workload(text, trust_remote_code=trust_remote_code))
        except UnverifiedProgramError as error:
            workloads.append(None)
            skipped[str(error)] += 1
        except Exception:  # TVM raises many types
            workloads.append(None)
            skipped["workload cannot be parsed"] += 1
    tasks: dict[str, Task] = {}
    rows: list[Measurement] = []
    for number, line in enumerate(read_bytes(files[1]).splitlines()):
        try:
            place, (trace, seconds, target_data, _) = load_json(line, files[1])
            workload = workloads[place]
            if not trust_remote_code:
                verify_trace(json.dumps(trace))
            target = load_target(json.dumps(target_data), trust_remote_code=trust_remote_code)
            times = tuple(1e3 * float(time_s) for time_s in seconds or ())
        except UnverifiedProgramError as error:
            skipped[str(error)] += 1
            continue
        except Exception:  # malformed JSON of any form, or an error of TVM
            skipped["not a record"] += 1
            continue
        if workload is None or not times or not all(0 < time_ms < 1e10 for time_ms in times):
            skipped["no workload or no times"] += 1
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
    """Return the JSON of a workload from a database line `[hash, content]`.

    The content is base64 of an 8-byte little-endian length followed by the JSON.

    Raises:
        ValueError: the content has another format.
    """
    content = base64.b64decode(line[1], validate=True)
    size = int.from_bytes(content[:8], "little")
    if size != len(content) - 8:
        raise ValueError("The length of a workload does not match its JSON. Export it again.")
    return content[8:].decode()


def task_of(workload: Any, target_json: str) -> Task:
    """Return the task of a workload without a source graph."""
    text, types = workload_text(workload), argument_types(workload)
    return make_task(workload, _block_names(workload), target_json, text, types)


def _block_names(workload: Any) -> str:

    tvm = importlib.import_module("tvm")
    schedule = tvm.s_tir.Schedule(workload)
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    return "_".join(str(schedule.get(block).name_hint) for block in blocks)[:200]
