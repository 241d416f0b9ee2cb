"""Records for others: arrays for people who train cost models, and TVM's own databases."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.splits import split_of
from ..atomic import replaced
from ..errors import TuningError, raises_only
from ..isolation import Limits, LocalPool, PoolJob, Work
from ..storage.staging import Staging
from .collecting import check_tvm
from .measurement import PHASES, Measurement, normalised_throughput
from .records import TuningRecords, read_records

DATABASE_FILES = ("database_workload.json", "database_tuning_record.json")
SPLITS_BY = ("family", "task", "random")


@raises_only(TuningError)
def export_features(
    found: TuningRecords, path: str | os.PathLike[str], *, splits_by: str = "family"
) -> Path:
    """Write an .npz with features, times and splits of the records that have features.

    `features` float32 [stores, f] has the rows of all records after one another, `offsets` int64
    [records + 1] where each begins; `times_ms` float64 [records], the median, infinite for a
    failure; `throughput` float64 [records], best of the task over it; `flops` int64 [records];
    `task`, `family`, `split` and `record_id` are text. What is held out is whole families of
    operators (`family`), whole tasks (`task`) or rows (`random`), by a hash, so that a split stays
    the same where records are added.

    Raises:
        TuningError: no record has features, there are several sets of them, or no such split.

    >>> split_for("task", TuningRecords({}, (), {}), None)
    Traceback (most recent call last):
    graphnet_datasets.errors.TuningError: There is no measurement to put into a split.
    """
    if splits_by not in SPLITS_BY:
        raise TuningError(f"There are splits by {', '.join(SPLITS_BY)}, and not by `{splits_by}`.")
    rows = [each for each in found.measurements if each.features is not None]
    sets = {each.feature_set for each in rows}
    if len(sets) != 1:
        raise TuningError(
            "The records have no features."
            if not rows
            else f"The records have features of {len(sets)} sets: {', '.join(sorted(sets))}. "
            "Export those of one."
        )
    arrays = [each.features for each in rows if each.features is not None]
    content: dict[str, Any] = {
        "features": np.concatenate(arrays),
        "offsets": np.cumsum([0, *map(len, arrays)]),
        "times_ms": np.array([each.latency_ms for each in rows]),
        "throughput": normalised_throughput(rows),
        "flops": np.array([found.tasks[each.task_id].flops for each in rows], np.int64),
        "task": np.array([each.task_id for each in rows]),
        "family": np.array([found.tasks[each.task_id].family for each in rows]),
        "split": np.array([split_for(splits_by, found, each) for each in rows]),
        "record_id": np.array([each.record_id for each in rows]),
        "feature_set": np.array(sets.pop()),
    }
    path = Path(path)
    with replaced(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **content)
    return path


def split_for(splits_by: str, found: TuningRecords, row: Measurement | None) -> str:
    """Return the split of a record: train, validation or test."""
    if row is None:
        raise TuningError("There is no measurement to put into a split.")
    keys = {
        "family": found.tasks[row.task_id].family,
        "task": row.task_id,
        "random": row.record_id,
    }
    return split_of(keys[splits_by])


def export_tvm_database(
    dataset: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    trust_remote_code: bool = False,
) -> int:
    """Write the correct records of a dataset as a `JSONDatabase` of TVM and return their number.

    `directory` is what TVM calls `work_dir`. Workloads are read in a process of their own, after
    they have passed the verifier unless `trust_remote_code`.

    Raises:
        DatasetNotFoundError: there is no such dataset.
        CompilerUnavailableError: TVM is not installed.
        DatasetExistsError: something is at `directory` already.
        TuningError: a workload or a target cannot be read.
    """
    check_tvm()
    read_records(dataset, with_features=False)  # says at once what is wrong with it
    done = _exchange("export", str(dataset), Path(directory), trust_remote_code)
    return int(done["count"])


def import_tvm_database(
    source: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    trust_remote_code: bool = False,
) -> dict[str, int]:
    """Write a dataset of tasks and records from a `JSONDatabase` of TVM.

    The two files are read in a process of its own. Returns the number of lines left out, by reason;
    lines that the verifier refuses are left out unless `trust_remote_code`.

    Raises:
        CompilerUnavailableError: TVM is not installed.
        DatasetExistsError: something is at `directory` already.
        TuningError: there is no such database, or no record in it can be read.
    """
    check_tvm()
    place = Path(source).resolve()
    for name in DATABASE_FILES:
        if not (place / name).is_file():
            raise TuningError(f"There is no database of TVM in `{source}`: no `{name}`.")
    return dict(_exchange("import", str(place), Path(directory), trust_remote_code)["skipped"])


def _exchange(kind: str, source: str, target: Path, trust_remote_code: bool) -> dict[str, Any]:
    """Run a worker that writes to `target`, whole or not at all, and return its messages."""
    staging = Staging(target, "exchange")
    staging.check_free()
    is_local = Path(source).exists()
    with staging.hold():
        staged = staging.new_place().absolute()
        pool = LocalPool(
            Work(
                "graphnet_datasets.tuning.server",
                PHASES,
                Limits(default_timeout_s=3600.0, memory_bytes=4 * 2**30),
                {"TVM_NUM_THREADS": "1"},
            ),
            1,
        )
        payload = {
            "kind": kind,
            "source": str(Path(source).resolve()) if is_local else source,
            "target": str(staged),
            "trust_remote_code": trust_remote_code,
        }
        try:
            reads = (payload["source"],) if is_local else ()
            writes = (str(staging.directory),)
            (done,) = pool.run([PoolJob(kind, payload, reads, writes)])
        finally:
            pool.close()
        if not done.is_success:
            error = done.outcome.error or {}
            raise TuningError(error.get("message") or f"The records were not read: {done.reason}")
        staging.publish(staged)
        return done.outcome.merged()
