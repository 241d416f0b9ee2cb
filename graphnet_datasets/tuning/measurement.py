"""Measurements: the outcome of one candidate with every repetition, a row of `tuning_records`."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..decoding import load_json
from ..errors import TuningError
from .candidate import Candidate, Origin, trace_hash

MAX_ERROR_LENGTH = 500

MAX_TIMING_S = 3.0
"""Limit in seconds for all repetitions of a candidate; slow candidates get fewer repetitions, at
least two."""

PHASES = ("build", "check", "time")
"""The phases of a trial's process, in order; each has its own time limit."""


class TrialStatus(enum.StrEnum):
    """The outcome of a trial."""

    OK = "ok"
    """Built, correct and timed."""
    WRONG = "wrong"
    """Ran, but the outputs differ from those of the unscheduled workload."""
    UNCHECKABLE = "uncheckable"
    """Not run, because no wrong output could differ from the outputs of the unscheduled workload:
    they are constant, or do not depend on the inputs."""
    SCHEDULE_FAILED = "schedule_failed"
    """The trace is malformed or does not replay on the workload."""
    BUILD_FAILED = "build_failed"
    RUN_FAILED = "run_failed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    CRASH = "crash"
    """The process of the trial died."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """One row of `tuning_records`; the fields have the names of its columns.

    `times_ms` are milliseconds per call of every repetition, in order and unfiltered; empty unless
    `status` is ok. `build_s`, `run_s` and `trial_s` are seconds (`trial_s` is the total without
    waiting for a worker); `tuner_s` is this trial's share of the tuner's own seconds. `features` is
    float32 [stores, f] or None, and `machine_code` float32 [n] or None. `anchor_ms` are times of a
    fixed kernel measured beside the batch, which reveal drift. `tuner_options` is JSON.
    `max_abs_error` and `min_t` compare the outputs with those of the unscheduled workload, `min_t`
    on the tolerance scale of `runs`.

    A measurer fills in its own results; the loop adds `run_id`, `record_id`, `tuner`,
    `tuner_options`, `trial`, `seed` and `tuner_s`.

    Raises:
        TuningError: an ok row lacks valid times, or a failed row has times.

    >>> row = Measurement("a1", "[[], []]", Origin.RANDOM, TrialStatus.OK, times_ms=(3.0, 2.0, 4.0))
    >>> row.latency_ms, row.is_ok
    (3.0, True)
    >>> failed = Measurement("a1", "[[]]", Origin.RANDOM, TrialStatus.TIMEOUT, error="10 s passed")
    >>> failed.latency_ms
    inf
    """

    task_id: str
    trace_json: str = dataclasses.field(repr=False)
    origin: Origin
    status: TrialStatus
    times_ms: tuple[float, ...] = ()
    error: str = ""
    predicted: float | None = None
    predicted_std: float | None = None
    features: np.ndarray | None = dataclasses.field(default=None, repr=False)
    feature_set: str = ""
    machine_code: np.ndarray | None = dataclasses.field(default=None, repr=False)
    machine_code_set: str = ""
    number: int = 1
    repeat: int = 0
    min_repeat_ms: int = 0
    warmup: int = 0
    anchor_ms: tuple[float, ...] = ()
    build_s: float | None = None
    run_s: float | None = None
    trial_s: float | None = None
    tuner_s: float | None = None
    max_abs_error: float | None = None
    min_t: float | None = None
    input_seed: int = 0
    record_id: str = ""
    run_id: str = ""
    tuner: str = ""
    tuner_options: str = "{}"
    trial: int = 0
    seed: int = 0
    device: str = ""
    mcpu: str = ""
    num_threads: int = 1
    affinity: str = ""
    load_average: float | None = None
    tool_versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    created_at: datetime.datetime | None = None

    def __post_init__(self) -> None:
        is_timed = bool(self.times_ms) and all(
            math.isfinite(time_ms) and time_ms > 0 for time_ms in self.times_ms
        )
        if self.status == TrialStatus.OK and not is_timed:
            raise TuningError(
                f"A trial of the task `{self.task_id}` is `ok` with the times "
                f"{list(self.times_ms)}. Pass at least one time, all finite and above 0."
            )
        if self.status != TrialStatus.OK and self.times_ms:
            raise TuningError(
                f"A trial of the task `{self.task_id}` is `{self.status}` and has times. Pass no "
                "`times_ms` for a failed trial."
            )
        if self.features is not None and self.features.ndim != 2:
            raise TuningError(
                f"The features of a trial of `{self.task_id}` have {self.features.ndim} "
                "dimensions. Pass an array of shape [stores, features]."
            )
        if self.machine_code is not None and self.machine_code.ndim != 1:
            raise TuningError(
                f"The machine code of a trial of `{self.task_id}` has {self.machine_code.ndim} "
                "dimensions. Pass a vector of features."
            )
        object.__setattr__(self, "error", self.error[:MAX_ERROR_LENGTH])

    @property
    def is_ok(self) -> bool:
        """True if the candidate was built, is correct and was timed."""
        return self.status == TrialStatus.OK

    @property
    def latency_ms(self) -> float:
        """The median of the repetitions in milliseconds per call; infinite for a failure."""
        return statistics.median(self.times_ms) if self.times_ms else math.inf

    @property
    def trace_hash(self) -> str:
        """The hash that identifies the candidate in proposals, records and replays."""
        return trace_hash(self.trace_json)

    @property
    def candidate(self) -> Candidate:
        """The measured candidate."""
        return Candidate(
            self.task_id, self.trace_json, self.origin, self.predicted, self.predicted_std
        )

    @classmethod
    def of(cls, candidate: Candidate, status: TrialStatus, **columns: Any) -> Measurement:
        """Return the measurement of a candidate.

        >>> row = Measurement.of(Candidate("a1", "[]", Origin.MUTATE), TrialStatus.CRASH)
        >>> str(row.origin), str(row.status)
        ('mutate', 'crash')
        """
        return cls(
            candidate.task_id,
            candidate.trace_json,
            candidate.origin,
            status,
            predicted=candidate.predicted,
            predicted_std=candidate.predicted_std,
            **columns,
        )

    def to_row(self) -> dict[str, Any]:
        """Return the columns of `tuning_records` except `schema_version`, which the writer adds."""
        row = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        row["origin"] = str(self.origin)
        row["status"] = str(self.status)
        row["trace_hash"] = self.trace_hash
        row["times_ms"] = list(self.times_ms)
        row["anchor_ms"] = list(self.anchor_ms)
        for name in ("features", "machine_code"):
            row[name] = None if row[name] is None else row[name].tolist()
        row["tool_versions"] = [
            {"name": name, "version": version} for name, version in self.tool_versions.items()
        ]
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Measurement:
        """Return the measurement of a row of `tuning_records`; other columns are ignored.

        Raises:
            TuningError: a column is missing, or has an invalid type or value.
        """
        try:
            values = {
                field.name: row[field.name]
                for field in dataclasses.fields(cls)
                if row.get(field.name) is not None
            }
            values["origin"] = Origin(row["origin"])
            values["status"] = TrialStatus(row["status"])
            values["times_ms"] = tuple(map(float, row.get("times_ms") or ()))
            values["anchor_ms"] = tuple(map(float, row.get("anchor_ms") or ()))
            values["tool_versions"] = {
                str(item["name"]): str(item["version"]) for item in row.get("tool_versions") or ()
            }
            for name in values.keys() & {"features", "machine_code"}:
                values[name] = np.asarray(values[name], np.float32)
            load_json(values.get("tuner_options", "{}"), "the options of a tuner")
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, TuningError):
                raise
            raise TuningError(
                f"A row of `tuning_records` is not a measurement: {type(error).__name__}: {error}. "
                "Write rows with `Measurement.to_row`."
            ) from error


def normalised_throughput(measurements: Sequence[Measurement]) -> np.ndarray:
    """Return each measurement's label, float64 [n]: best time of its task over its own time.

    The best of each task in `measurements` has label 1, a failure 0. Cost models are fitted to
    these labels, so that tasks of microseconds and of seconds have equal weight.

    >>> rows = [
    ...     Measurement("a", "1", Origin.RANDOM, TrialStatus.OK, (2.0,)),
    ...     Measurement("a", "2", Origin.RANDOM, TrialStatus.OK, (8.0,)),
    ...     Measurement("b", "3", Origin.RANDOM, TrialStatus.CRASH),
    ... ]
    >>> normalised_throughput(rows).tolist()
    [1.0, 0.25, 0.0]
    """
    best: dict[str, float] = {}
    for row in measurements:
        best[row.task_id] = min(best.get(row.task_id, math.inf), row.latency_ms)
    return np.array(
        [best[row.task_id] / row.latency_ms if row.is_ok else 0.0 for row in measurements]
    )
