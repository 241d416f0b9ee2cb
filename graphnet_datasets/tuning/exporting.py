"""Export of records as arrays for training cost models, and exchange with TVM databases."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.splits import split_of
from ..atomic import replaced, temporary_directory
from ..errors import TuningError, raises_only
from ..isolation import Limits, LocalPool, PoolJob, Work
from ..storage.staging import Staging
from .collecting import check_tvm
from .languages import TVM, language_of
from .measurement import PHASES, Measurement, normalised_throughput
from .records import TuningRecords, fill_tuning, read_records

DATABASE_FILES = ("database_workload.json", "database_tuning_record.json")
SPLITS_BY = ("family", "task", "random")


@raises_only(TuningError)
def export_features(
    tuning_records: TuningRecords, path: str | os.PathLike[str], *, splits_by: str = "family"
) -> Path:
    """Write an `.npz` with features, times and splits of the records that have features.

    `features` float32 [stores, f] concatenates the rows of all records; `offsets` int64
    [records + 1] are their bounds. `times_ms` float64 [records] is the median, infinite for a
    failure. `throughput` float64 [records] is the task's best time over it. `flops` is int64
    [records]. `task`, `family`, `split` and `record_id` are strings. Splits hold out whole families
    of operators (`family`), whole tasks (`task`) or rows (`random`) by a hash, so that added
    records do not change the split of others.

    Raises:
        TuningError: no record has features, the records mix feature sets, or `splits_by` is
            unknown.

    >>> split_for("task", TuningRecords({}, (), {}), None)
    Traceback (most recent call last):
    graphnet_datasets.errors.TuningError: No measurement to assign to a split. Pass a measurement.
    """
    if splits_by not in SPLITS_BY:
        raise TuningError(f"`splits_by` must be one of {', '.join(SPLITS_BY)}, got `{splits_by}`.")
    rows = [row for row in tuning_records.measurements if row.features is not None]
    sets = {row.feature_set for row in rows}
    if len(sets) != 1:
        raise TuningError(
            "None of the records has features. Export a dataset that was tuned with features."
            if not rows
            else f"The records mix {len(sets)} feature sets: {', '.join(sorted(sets))}. Export "
            "the records of a single set."
        )
    arrays = [row.features for row in rows if row.features is not None]
    content: dict[str, Any] = {
        "features": np.concatenate(arrays),
        "offsets": np.cumsum([0, *map(len, arrays)]),
        "times_ms": np.array([row.latency_ms for row in rows]),
        "throughput": normalised_throughput(rows),
        "flops": np.array([tuning_records.tasks[row.task_id].flops for row in rows], np.int64),
        "task": np.array([row.task_id for row in rows]),
        "family": np.array([tuning_records.tasks[row.task_id].family for row in rows]),
        "split": np.array([split_for(splits_by, tuning_records, row) for row in rows]),
        "record_id": np.array([row.record_id for row in rows]),
        "feature_set": np.array(sets.pop()),
    }
    path = Path(path)
    with replaced(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **content)
    return path


def split_for(splits_by: str, tuning_records: TuningRecords, row: Measurement | None) -> str:
    """Return the split of a record: `train`, `validation` or `test`."""
    if row is None:
        raise TuningError("No measurement to assign to a split. Pass a measurement.")
    keys = {
        "family": tuning_records.tasks[row.task_id].family,
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
    """Write the correct records of a dataset as a TVM `JSONDatabase`; return their number.

    `directory` is the `work_dir` of TVM. Workloads are parsed in a separate process, and must pass
    the verifier unless `trust_remote_code`.

    Raises:
        DatasetNotFoundError: the dataset does not exist.
        CompilerUnavailableError: TVM is not installed.
        DatasetExistsError: `directory` already exists.
        TuningError: a workload or target cannot be parsed, or is of another language.
    """
    check_tvm()
    records = read_records(dataset, with_features=False)
    if language_of(records.tasks.values()) is not TVM:
        raise TuningError(
            f"The tasks of `{dataset}` are not written in TVM's IR, so a database of TVM cannot "
            "contain their records. Export an `.npz` file of features instead."
        )
    with temporary_directory("graphnet-records-") as folder:
        # The worker has neither a network nor the cache of downloads.
        fill_tuning(folder, records.tasks.values(), records.measurements)
        done = _exchange("export", folder, Path(directory), trust_remote_code)
    return int(done["count"])


def import_tvm_database(
    source: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    trust_remote_code: bool = False,
) -> dict[str, int]:
    """Write a dataset of tasks and records from a TVM `JSONDatabase`.

    Its two files are parsed in a separate process. Returns the number of skipped lines by reason;
    lines that the verifier rejects are skipped unless `trust_remote_code`.

    Raises:
        CompilerUnavailableError: TVM is not installed.
        DatasetExistsError: `directory` already exists.
        TuningError: the database does not exist, or none of its records can be parsed.
    """
    check_tvm()
    place = Path(source).resolve()
    for name in DATABASE_FILES:
        if not (place / name).is_file():
            raise TuningError(
                f"`{source}` is not a TVM database: it has no `{name}`. Pass the `work_dir` of a "
                "`JSONDatabase`."
            )
    return dict(_exchange("import", place, Path(directory), trust_remote_code)["skipped"])


def _exchange(kind: str, source: Path, target: Path, trust_remote_code: bool) -> dict[str, Any]:
    """Run a worker that writes `target` completely or not at all; return its messages."""
    staging = Staging(target, "exchange")
    staging.check_free()
    with staging.hold():
        staged = staging.new_place().absolute()
        pool = LocalPool(
            Work(
                "graphnet_datasets.tuning.worker",
                PHASES,
                Limits(default_timeout_s=3600.0, memory_bytes=4 * 2**30),
                {"TVM_NUM_THREADS": "1"},
            ),
            1,
        )
        payload = {
            "kind": kind,
            "source": str(source.resolve()),
            "target": str(staged),
            "trust_remote_code": trust_remote_code,
        }
        try:
            writes = (str(staging.directory),)
            (done,) = pool.run([PoolJob(kind, payload, (payload["source"],), writes)])
        finally:
            pool.close()
        if not done.is_success:
            error = done.outcome.error or {}
            raise TuningError(
                error.get("message")
                or f"The records could not be converted: {done.reason}. Check the input."
            )
        staging.publish(staged)
        return done.outcome.merged()
