"""One server for all candidates here, and samples on which cheating pays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.benchmark import TimingSettings
from graphnet_datasets.benchmark.executors.sample_runner import (
    CandidateCompiler,
    SampleJob,
    SampleRunner,
)
from graphnet_datasets.benchmark.judging.times import was_busy
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema import RUNS_SCHEMA, sample_to_row
from tests.benchmark.samples import LINEAR, quick

SETTINGS = quick(
    # As many pairs as timed calls are judged, so that no verdict here is a matter of luck.
    timing=TimingSettings(
        min_pairs=3, max_pairs=3, budget_s=0, hard_budget_s=5, warmup_s=0, min_warmup_calls=1
    ),
    alone_calls=1,
    memory_limit_bytes=2**30,
    phase_timeouts_s=dict.fromkeys(("load", "baseline", "compile", "run", "oracle"), 600.0),
)

BUILT_IN = (
    "eager", "torchscript", "aot_eager", "paddle-eager", "paddle-to-static", "paddle-inference",
)  # fmt: skip
Trial = Callable[..., dict[str, Any]]


def make_trial(runner: SampleRunner) -> Trial:
    """Return a function that runs a candidate of a module of candidates and returns its record."""

    def trial(
        candidate: str,
        sample: Sample = LINEAR,
        *,
        module: str = "tests.candidates",
        max_processes: int | None = None,
        **timeouts_s: float,
    ) -> dict[str, Any]:
        before = runner._limits
        runner._limits = dataclasses.replace(
            before,
            phase_timeouts_s={**before.phase_timeouts_s, **timeouts_s},
            max_processes=max_processes or before.max_processes,
        )
        name = candidate if candidate in BUILT_IN else f"{module}:{candidate}"
        row = sample_to_row(sample, derived_columns(sample))
        try:
            (record,) = runner.run(
                SampleJob(sample, row, [("id", CandidateCompiler(name, sample.framework, {}, ""))])
            )
        finally:
            runner._limits = before
        assert record.keys() == set(RUNS_SCHEMA.names)
        return record

    return trial


# Not for the whole session: while a server runs, its worker of the suite is a subreaper, with
# children and orphans that other tests count.
@pytest.fixture(scope="package")
def trial() -> Iterator[Trial]:
    runner = SampleRunner("cpu", SETTINGS)
    yield make_trial(runner)
    runner.close()


@pytest.fixture(scope="package")
def probe_trial() -> Iterator[Trial]:
    runner = SampleRunner("cpu", dataclasses.replace(SETTINGS, input_mode="probe"))
    yield make_trial(runner)
    runner.close()


def reason_of_tampering(record: dict[str, Any]) -> str:
    """Return the reason for which a run has no speedup that counts.

    The run is refused. If other processes took the processors, it is undecidable instead.
    """
    if record["status"] == "ok":
        assert was_busy(record)
        return record["undecidable_reason"]
    assert (record["status"], record["reason"]) == ("run_failed", "tampering")
    assert (record["speedup"], record["error_code"]) == (None, 2)
    return record["error_message"]
