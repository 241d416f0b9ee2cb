"""Learning tasks made from the tables of a dataset: graphs, run records and tuning records."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import DatasetNotFoundError, MissingExtraError, ScoreError
from ..sample import Sample
from ..schema import Status
from ..scores import as_table, costs, split_arms
from ..storage.loading import load_dataset
from .features import GRAPH_COLUMNS, Floats, Graph, graph_features, make_graph
from .metrics import latency_error, outcome_accuracy, schedule_ranking

Kind = Literal["regression", "classification", "ranking"]
Split = Literal["grouped", "random"]
Indices = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class LearningTask:
    """Features and targets of n rows, with the groups that a fold must keep together.

    Attributes:
        features: float32 [n, f].
        feature_names: the names of the f columns.
        targets: float64 [n]. Natural logarithms of milliseconds for `latency`, 0 or 1 for
            `speedup_sign` and `compilable`, and the speed relative to the fastest schedule of the
            task, in (0, 1], for `schedule_rank`.
        ids: the id of the sample or record of each row.
        groups: families of similar graphs, or of tuning tasks.
        queries: for `schedule_rank`, the tuning task of each row.
        conditions: the arm, the machine and the rows that were left out.
    """

    name: str
    kind: Kind
    features: Floats
    feature_names: Sequence[str]
    targets: npt.NDArray[np.float64]
    ids: Sequence[str]
    groups: Sequence[str]
    queries: Sequence[str] = ()
    conditions: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    dataset: str = "graphnet"

    def folds(self, split: Split = "grouped", count: int = 5) -> Iterator[tuple[Indices, Indices]]:
        """Yield the indices of training and test rows of each fold, the same in every call.

        `grouped` keeps all rows of a group in one fold, so that no similar graph is in the training
        rows. `random` does not; the difference between the two shows how much a model relies on
        similar graphs.

        Raises:
            ScoreError: The split is unknown, or there are fewer groups than folds.
            MissingExtraError: scikit-learn is not installed.
        """
        if split not in ("grouped", "random"):
            raise ScoreError(f"There is no split `{split}`. Choose `grouped` or `random`.")
        num_groups = len(set(self.groups))
        if not 2 <= count <= num_groups:
            raise ScoreError(
                f"The task `{self.name}` has {num_groups} groups, too few for {count} folds. "
                f"Choose between 2 and {num_groups} folds."
            )
        try:
            from sklearn.model_selection import GroupKFold, KFold
        except ImportError as error:
            raise MissingExtraError("scikit-learn", "learning", "Folds") from error
        if split == "grouped":
            yield from GroupKFold(count).split(self.features, groups=self.groups)
        else:
            yield from KFold(count, shuffle=True, random_state=0).split(self.features)

    def score(self, predictions: npt.ArrayLike) -> dict[str, float]:
        """Return the metrics of a prediction for each row, in the units of `targets`.

        Raises:
            ScoreError: The number of predictions differs from the number of rows.
        """
        values = np.asarray(predictions, np.float64)
        if len(values) != len(self.targets):
            raise ScoreError(
                f"There are {len(values)} predictions for {len(self.targets)} rows. Predict every "
                "row, for example the test rows of all folds."
            )
        if self.kind == "regression":
            return latency_error(np.exp(values), np.exp(self.targets))
        if self.kind == "classification":
            return outcome_accuracy(values, self.targets)
        return schedule_ranking(values, 1 / self.targets, self.queries)

    @functools.cached_property
    def graphs(self) -> list[Graph]:
        """The data flow of each row's graph, for graph networks; loaded on first use.

        Raises:
            ScoreError: The rows are schedules.
        """
        if self.kind == "ranking":
            raise ScoreError("Rows of `schedule_rank` are schedules. Use their features.")
        rows = _graph_rows(self.dataset, set(self.ids), None)
        return [make_graph(Sample.from_row(rows[sample_id])) for sample_id in self.ids]


def load_learning_task(
    name: str, dataset: str = "graphnet", *, compiler: str | None = None
) -> LearningTask:
    """Return a learning task from the tables of a dataset.

    - `latency`: the time of a call in eager, the median of the records.
    - `speedup_sign`: whether a compiler is faster than eager. Records whose interval contains 1 are
      left out.
    - `compilable`: whether a compiler compiles a graph.
    - `schedule_rank`: the order of a tuning task's schedules by time.

    Times of different machines are never mixed: the machine with the most records is chosen.

    Args:
        name: one of `TASKS`.
        dataset: "graphnet", a directory or a repository of the Hub.
        compiler: the compiler of `speedup_sign` (by default `inductor`) and `compilable` (by
            default `iree`); its arm with the most records is chosen.

    Raises:
        ScoreError: There is no such task, or too few records for it.
        DatasetNotFoundError: The dataset has no such table.
    """
    if name not in TASKS:
        names = ", ".join(f"`{task}`" for task in sorted(TASKS))
        raise ScoreError(f"There is no learning task `{name}`. Choose one of {names}.")
    return TASKS[name](dataset, compiler)


def _latency(dataset: str, compiler: str | None) -> LearningTask:
    _refuse_compiler("latency", compiler)
    records = [
        record
        for record in _table(dataset, "runs", _RUN_COLUMNS)
        if record["status"] == Status.OK and record["device"] == "cpu"
    ]
    records, machine = _of_one_machine(records, "environment_id", "num_threads")
    targets = {row["sample_id"]: math.log(row["eager_ms"]) for row in costs(records).to_pylist()}
    return _graph_task("latency", "regression", dataset, targets, machine)


def _speedup_sign(dataset: str, compiler: str | None) -> LearningTask:
    records, arm = _arm(dataset, compiler or "inductor")
    records, machine = _of_one_machine(records, "environment_id")
    records = [record for record in records if record["status"] == Status.OK]
    clear = [
        record for record in records if record["speedup_low"] > 1 or record["speedup_high"] < 1
    ]
    targets = {record["sample_id"]: float(record["speedup"] > 1) for record in clear}
    conditions = {"arm": arm, **machine, "num_unclear": len(records) - len(clear)}
    return _graph_task("speedup_sign", "classification", dataset, targets, conditions)


def _compilable(dataset: str, compiler: str | None) -> LearningTask:
    records, arm = _arm(dataset, compiler or "iree")
    unrelated = (Status.BASELINE_FAILED, Status.HARNESS_FAILED)
    targets = {
        record["sample_id"]: float(record["status"] != Status.COMPILE_FAILED)
        for record in records
        if record["status"] not in unrelated
    }
    return _graph_task("compilable", "classification", dataset, targets, {"arm": arm})


def _schedule_rank(dataset: str, compiler: str | None) -> LearningTask:
    from ..tuning.models.pooling import pool_features, task_vector
    from ..tuning.task import Task

    _refuse_compiler("schedule_rank", compiler)
    tasks = {row["task_id"]: row for row in _table(dataset, "tuning_tasks")}
    rows = [
        row
        for row in _table(dataset, "tuning_records", _SCHEDULE_COLUMNS)
        if row["status"] == Status.OK and len(row["features"] or ()) and row["task_id"] in tasks
    ]
    rows, machine = _of_one_machine(rows, *_TUNING_MACHINE)
    times = [statistics.median(row["times_ms"]) for row in rows]
    fastest: dict[str, float] = {}
    for row, time_ms in zip(rows, times, strict=True):
        fastest[row["task_id"]] = min(time_ms, fastest.get(row["task_id"], time_ms))
    vectors = {task_id: task_vector(Task.from_row(row)) for task_id, row in tasks.items()}
    features = np.array(
        [
            np.concatenate([pool_features(np.array(row["features"])), vectors[row["task_id"]]])
            for row in rows
        ],
        np.float32,
    )
    return LearningTask(
        "schedule_rank",
        "ranking",
        features,
        [f"feature_{number}" for number in range(features.shape[-1])],
        np.array(
            [fastest[row["task_id"]] / time_ms for row, time_ms in zip(rows, times, strict=True)]
        ),
        [row["record_id"] for row in rows],
        [tasks[row["task_id"]]["family"] for row in rows],
        [row["task_id"] for row in rows],
        machine,
        dataset,
    )


TASKS: Mapping[str, Callable[[str, str | None], LearningTask]] = {
    "latency": _latency,
    "speedup_sign": _speedup_sign,
    "compilable": _compilable,
    "schedule_rank": _schedule_rank,
}
"""The learning tasks by name."""

_RUN_COLUMNS = (
    "sample_id", "status", "speedup", "min_t", "device", "num_threads", "environment_id",
    "baseline_latency_ms",
)  # fmt: skip
_TUNING_MACHINE = ("device", "mcpu", "num_threads", "feature_set")
_SCHEDULE_COLUMNS = ("record_id", "task_id", "status", "features", "times_ms", *_TUNING_MACHINE)


def _graph_task(
    name: str,
    kind: Kind,
    dataset: str,
    targets: Mapping[str, float],
    conditions: Mapping[str, Any],
) -> LearningTask:
    rows = _graph_rows(dataset, set(targets), ("id", "split_group", *GRAPH_COLUMNS))
    ids = sorted(rows)
    if len(ids) < 10:
        raise ScoreError(
            f"The task `{name}` has {len(ids)} graphs with records in `{dataset}`; at least 10 are "
            "needed. Measure more graphs with `graphnet run`."
        )
    features, names = graph_features([rows[sample_id] for sample_id in ids])
    return LearningTask(
        name,
        kind,
        features,
        names,
        np.array([targets[sample_id] for sample_id in ids]),
        ids,
        [rows[sample_id]["split_group"] for sample_id in ids],
        conditions=dict(conditions) | {"num_without_graph": len(targets) - len(ids)},
        dataset=dataset,
    )


def _table(dataset: str, config: str, columns: Sequence[str] | None = None) -> Any:
    splits: Any = load_dataset(dataset, config, columns=columns)
    for rows in splits.values():
        yield from rows


def _graph_rows(dataset: str, ids: set[str], columns: Sequence[str] | None) -> dict[str, Any]:
    wanted = [("id", "in", sorted(ids))]
    splits: Any = load_dataset(dataset, "all", columns=columns, filters=wanted)
    return {row["id"]: row for rows in splits.values() for row in rows}


def _arm(dataset: str, compiler: str) -> tuple[list[dict[str, Any]], str]:
    """Return the records of the compiler's arm with the most records, and its name."""
    runs: Any = load_dataset(dataset, "runs", split="train")
    arms = split_arms(as_table(runs.with_format("arrow")[:]))
    sizes = {
        name: table.num_rows
        for name, table in arms.items()
        if table.num_rows and table["compiler"][0].as_py() == compiler
    }
    if not sizes:
        compilers = sorted({table["compiler"][0].as_py() for table in arms.values()})
        raise ScoreError(
            f"There are no records of the compiler `{compiler}` in `{dataset}`. Choose one of "
            f"{', '.join(f'`{name}`' for name in compilers)}."
        )
    name = max(sizes, key=lambda name: (sizes[name], name))
    return arms[name].to_pylist(), name


def _of_one_machine(
    rows: Sequence[dict[str, Any]], *columns: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows of the machine with the most rows, and the values that describe it."""
    if not rows:
        raise DatasetNotFoundError("There are no records. Measure some with `graphnet run`.")
    key_of = operator.itemgetter(*columns)
    (most_frequent, _) = Counter(map(key_of, rows)).most_common(1)[0]
    chosen = [row for row in rows if key_of(row) == most_frequent]
    return chosen, {name: chosen[0][name] for name in columns}


def _refuse_compiler(task: str, compiler: str | None) -> None:
    if compiler is not None:
        raise ScoreError(
            f"The task `{task}` does not depend on a compiler, but `compiler` is `{compiler}`. "
            "Omit it."
        )
