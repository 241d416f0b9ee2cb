"""Repeated checks of recorded candidates, without timing them."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ..atomic import append_json
from ..decoding import read_journal
from ..errors import TuningError
from ..isolation import Limits
from .measure import MEASURE_LIMITS, LiveMeasurer
from .measurement import Measurement, TrialStatus
from .records import read_records


@dataclasses.dataclass(frozen=True, slots=True)
class Recheck:
    """The result of building and checking a record's candidate again.

    `recorded` is the status in the record, `status` the present one; `ok` means that the outputs
    are correct.
    """

    record_id: str
    task_id: str
    trace_hash: str
    recorded: str
    status: str
    error: str = ""
    max_abs_error: float | None = None
    min_t: float | None = None


def recheck_records(
    dataset: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    tasks: Sequence[str] = (),
    limits: Limits = MEASURE_LIMITS,
    num_workers: int = 1,
    trust_remote_code: bool = False,
    on_record: Callable[[Recheck, int, int], None] | None = None,
) -> list[Recheck]:
    """Build and check the candidates of records, and append a JSON line for each to `out`.

    `tasks` are ids of tasks or their first characters; by default, all tasks. The records of the
    tasks are checked in turn. Records with a line in `out` are not checked again, so that an
    interrupted call can be repeated. Returns all lines of the file.

    Raises:
        DatasetNotFoundError: the dataset does not exist, or has no records.
        TuningError: no record belongs to the tasks, or a line of `out` is not a result.
    """
    records = read_records(dataset, with_features=False)
    rows = [
        row
        for row in records.measurements
        if not tasks or any(row.task_id.startswith(start) for start in tasks)
    ]
    if not rows:
        raise TuningError(
            f"No record of `{dataset}` belongs to the tasks {', '.join(tasks)}. Pass ids of its "
            "tasks, or their first characters."
        )
    path = Path(out)
    results = _read(path) if path.exists() else []
    done = {result.record_id for result in results}
    waiting = [row for row in _in_turn(rows) if row.record_id not in done]
    chosen = [records.tasks[task_id] for task_id in dict.fromkeys(row.task_id for row in waiting)]
    with LiveMeasurer(
        chosen, limits=limits, num_workers=num_workers, trust_remote_code=trust_remote_code
    ) as measurer:
        for row in waiting:
            ((status, error, report),) = measurer.check([row.candidate])
            result = Recheck(
                row.record_id,
                row.task_id,
                row.trace_hash,
                str(row.status),
                str(status),
                error,
                report.get("max_abs_error"),
                report.get("min_t"),
            )
            append_json(path, dataclasses.asdict(result))
            results.append(result)
            if on_record is not None:
                on_record(result, len(results), len(waiting) + len(done))
    return results


def summary(results: Iterable[Recheck]) -> str:
    """Return the number of results by recorded and present status, a line each.

    >>> print(summary([Recheck("0", "a", "b", "ok", "ok"), Recheck("1", "a", "c", "ok", "wrong")]))
    1 record ok, now ok
    1 record ok, now wrong
    """
    counts = collections.Counter((result.recorded, result.status) for result in results)
    return "\n".join(
        f"{count} {'record' if count == 1 else 'records'} {recorded}, now {status}"
        for (recorded, status), count in sorted(counts.items())
    )


def _in_turn(rows: Sequence[Measurement]) -> Iterator[Measurement]:
    """Yield a record of each task in turn, so that an interrupted check covers all tasks."""
    groups: dict[str, list[Measurement]] = {}
    for row in rows:
        groups.setdefault(row.task_id, []).append(row)
    for turn in itertools.zip_longest(*groups.values()):
        yield from (row for row in turn if row is not None)


def _read(path: Path) -> list[Recheck]:
    try:
        results = [Recheck(**columns) for columns in read_journal(path, is_strict=True)]
        for result in results:
            TrialStatus(result.status)
    except (TypeError, ValueError) as error:
        raise TuningError(
            f"`{path}` has a line that is not the result of a check: {error}. Choose another file."
        ) from error
    return results
