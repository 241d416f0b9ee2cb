"""A worker that runs a sample once and hands over its outputs; it imports one framework only."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...frameworks import FRAMEWORK_VARIABLE, make_inputs, materialize, module
from ...frameworks.runtime import make_runtime
from ...inputs import Mode, prepare_blocks
from ...isolation import Reporter
from ...schema.sample_files import read_sample
from ..handover import FIRST

PHASES = ("load", "run")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """Settings for one run of a sample, written by the parent and read by the child."""

    seed: int
    mode: Mode
    num_threads: int

    def to_payload(self) -> dict[str, Any]:
        """Return the job as a JSON-compatible object."""
        return dataclasses.asdict(self)

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> OneRun:
        """Return the job that `to_payload` serialized.

        >>> job = OneRun(seed=3, mode="probe", num_threads=1)
        >>> OneRun.from_payload(job.to_payload()) == job
        True
        """
        return cls(**payload)


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Run the sample in `directory` on its inputs and write its outputs."""
    job = OneRun.from_payload(payload)
    sample = read_sample(directory)
    runtime = make_runtime(sample.framework, "cpu", job.num_threads)
    callable_ = materialize(sample, allow_unchecked_operators=True)  # in a separate process
    inputs = make_inputs(sample, job.seed, job.mode)
    reporter.enter("run")
    runtime.seed(job.seed)
    outputs = callable_(**inputs)
    reporter.send({"outputs": runtime.write_outputs(outputs, directory / FIRST)})


def prepare() -> None:
    """Import the framework and make the preparations that all jobs share."""
    framework = os.environ[FRAMEWORK_VARIABLE]
    make_runtime(framework, "cpu", 1)
    module(framework, "materialize")
    prepare_blocks()
