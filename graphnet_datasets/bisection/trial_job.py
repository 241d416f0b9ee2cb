"""The JSON message that describes a trial to its worker process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..benchmark.worker_job import WorkerJob
from .elements import FileOf

PHASES = ("load", "baseline", "compile", "run")
"""Phases of a trial."""
VALUES = "values"
"""The phase of the job that runs the whole graph and stores its values."""
NUM_CALLS = 3
"""Number of calls of the compiled graph; some compilers specialise in the second call."""

EAGER_DRAWS = "eager_draws.bin"
"""The file of eager's outputs from repeated calls with other seeds."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialJob:
    """A trial.

    `elements` contains, for each input of the sample, the location of its elements, or None if they
    are drawn. If an input is smaller than the stored tensor, it uses the beginning of each axis.
    `is_timed` requests the speedup.
    """

    worker: WorkerJob
    elements: tuple[FileOf | None, ...]
    is_timed: bool = False

    def to_payload(self) -> dict[str, Any]:
        """Return the job as a JSON-compatible object."""
        return {
            "kind": "trial",
            "worker": self.worker.to_payload(),
            "elements": [file and [file[0], list(file[1])] for file in self.elements],
            "is_timed": self.is_timed,
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> TrialJob:
        """Parse the result of `to_payload`.

        >>> from graphnet_datasets.benchmark import Settings
        >>> worker = WorkerJob(kind="candidate", device="cpu", settings=Settings())
        >>> job = TrialJob(worker=worker, elements=(("0.bin", (2, 3)), None))
        >>> TrialJob.from_payload(job.to_payload()) == job
        True
        """
        return cls(
            worker=WorkerJob.from_payload(payload["worker"]),
            elements=tuple(file and (file[0], tuple(file[1])) for file in payload["elements"]),
            is_timed=payload["is_timed"],
        )
