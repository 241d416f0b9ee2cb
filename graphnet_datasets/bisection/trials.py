"""Trials: parts of a graph under a compiler, each in its own process and never run twice."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.costs import measure_costs
from ..analysis.orders import Orders, find_steady_orders
from ..analysis.randomness import is_random
from ..atomic import append_json, temporary_directory
from ..benchmark import Settings
from ..benchmark.draw_plan import DrawPlan, plan_draws
from ..benchmark.executors.collecting import read_keys
from ..benchmark.executors.jobs import CandidateCompiler
from ..benchmark.executors.sample_runner import SampleRunner
from ..benchmark.handover import (
    DRAWS,
    WRITTEN,
    HandoverError,
    read_drawn,
    read_draws,
    read_outputs,
    read_written,
)
from ..benchmark.judging.calls import compare_calls
from ..benchmark.judging.correctness import (
    Drawn,
    Output,
    count_not_finite,
    find_mismatch,
    overall_min_t,
)
from ..benchmark.judging.random_outputs import RandomVerdict, judge_random_outputs
from ..benchmark.judging.ties import SettledCalls, settle
from ..benchmark.records.environment import describe_environment, environment_id
from ..benchmark.records.records import hash_json, sample_digest
from ..decoding import read_journal
from ..errors import BisectionError, DiskError
from ..frameworks.results import Observed
from ..isolation import Ending, Outcome
from ..sample import Sample, Statistics, Value
from ..schema import Reason
from ..schema.sample_files import write_sample
from .elements import FileOf, with_elements
from .failures import Failure, Verdict
from .trial_job import EAGER_DRAWS, NUM_CALLS, PHASES, VALUES, TrialJob

MAX_VALUE_BYTES = 2 * 2**30
"""Maximum disk space in bytes for values of the whole graph during a bisection."""
TRIALS_FILE = "trials.jsonl"
_STATUS_ENDINGS = {
    Ending.ERROR: "error",
    Ending.CRASH: "crash",
    Ending.TIMEOUT: "hang",
    Ending.OUT_OF_MEMORY: "memory",
    Ending.TOO_MANY_PROCESSES: "crash",
    Ending.PROTOCOL: "crash",
}


class BudgetSpentError(Exception):
    """The budget of time or trials is spent."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """A candidate: a sample, and for each input the corresponding value of the whole graph.

    The value is None for inputs that are drawn from statistics or stored in the sample.
    """

    sample: Sample
    values: tuple[int | None, ...]


@dataclasses.dataclass(frozen=True)
class Stored:
    """A tensor that eager computed in the whole graph: its type, statistics and location."""

    value: Value
    seen: Observed
    file: FileOf


@dataclasses.dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of a bisection, in seconds or in executed trials."""

    seconds: float = math.inf
    trials: float = math.inf


@dataclasses.dataclass(frozen=True)
class Progress:
    """The progress of a bisection: current step, trials (run and reused), operators left."""

    doing: str
    num_trials: int
    num_known: int
    num_ops: int
    seconds: float


class TrialRunner(SampleRunner):
    """Runs trials on one device, in processes forked from a server with all imports."""

    server_module = f"{__package__}.trial_worker"

    @property
    def device(self) -> str:
        """The device on which trials run."""
        return self._device

    @property
    def settings(self) -> Settings:
        """The settings for running samples."""
        return self._settings

    def store_values(
        self, sample: Sample, seed: int, place: Path, threads: int, *, trust_remote_code: bool
    ) -> dict[int, Stored]:
        """Run a whole graph under eager, store its values in `place` and return their descriptions.

        Raises:
            BisectionError: The graph fails.
        """
        server = self._server(sample.framework)
        payload = {
            "kind": VALUES,
            "seed": seed,
            "threads": threads,
            "place": str(place),
            "max_bytes": MAX_VALUE_BYTES,
            "trust_remote_code": trust_remote_code,
        }
        with server.directory() as directory:
            write_sample(sample, directory)
            limits = dataclasses.replace(self._limits, default_timeout_s=600.0)
            outcome = server.run(
                payload, directory, phases=(VALUES,), limits=limits, writes=(str(place),)
            )
        if outcome.ending is not Ending.FINISHED:
            message = (outcome.error or {}).get("message", "")
            raise BisectionError(
                f"`{sample.id}` does not run under eager ({outcome.ending}): {message} Choose a "
                "graph that runs under eager."
            )
        stored: dict[int, Stored] = {}
        for name, described in outcome.merged().items():
            value = int(name.rpartition(" ")[2])
            statistics = described["statistics"] and Statistics(**described["statistics"])
            shape = tuple(described["shape"])
            stored[value] = Stored(
                Value(described["dtype"], shape),
                Observed(statistics),
                (str(place / f"{value}.bin"), shape),
            )
        return stored

    def run_trial(
        self, sample: Sample, elements: Sequence[FileOf | None], candidate: CandidateCompiler,
        *, is_timed: bool,
    ) -> Verdict:  # fmt: skip
        """Run a sample under eager and under a compiler and return the verdict."""
        plan = _draw_plan(sample)
        worker_job = dataclasses.replace(self.make_worker_job(candidate, "candidate"), plan=plan)
        job = TrialJob(worker=worker_job, elements=tuple(elements), is_timed=is_timed)
        server = self._server(sample.framework)
        with server.directory() as directory:
            write_sample(sample, directory)
            temporary = directory / "tmp"
            temporary.mkdir()
            outcome = server.run(
                job.to_payload(),
                directory,
                phases=PHASES,
                limits=self._limits,
                environment={
                    "TMPDIR": str(temporary),
                    "XDG_CACHE_HOME": str(directory / "cache"),
                    "TORCHINDUCTOR_CACHE_DIR": str(directory / "cache" / "inductor"),
                },
                executes=worker_job.executes,
                reads=[*worker_job.reads, *(file[0] for file in elements if file is not None)],
            )
            return _judge(outcome, directory, plan, find_steady_orders(sample))


def _draw_plan(sample: Sample) -> DrawPlan | None:
    """Return the plan for drawing a random sample's outputs; None if its outputs are not random."""
    if not is_random(sample):
        return None  # saves the costs
    costs = measure_costs(sample)
    row = {} if costs is None else dataclasses.asdict(costs)
    return plan_draws({**row, "num_ops": sample.num_ops}, sample)


def _judge(
    outcome: Outcome, directory: Path, plan: DrawPlan | None, orders: Orders | None
) -> Verdict:
    messages = outcome.merged()
    if outcome.ending is not Ending.FINISHED:
        phase = outcome.phase
        if phase in ("load", "baseline"):
            message = str((outcome.error or {}).get("message", outcome.ending))
            return Verdict(ending="baseline", phase=phase, message=message)
        if phase == "run" and messages.get("failed_phase") == "compile":
            phase = "compile"
        error = outcome.error or {"type": "", "message": ""}
        code = outcome.exit_code
        return Verdict(
            ending=_STATUS_ENDINGS[outcome.ending],  # type: ignore[arg-type] (all of them endings)
            phase=phase,
            error_type=str(error["type"])[:200],
            message=str(error["message"])[:4000],
            signal=-code if code is not None and code < 0 else None,
        )
    try:
        expected = _read(directory, messages, "eager")
        calls = [_read(directory, messages, f"call {call}") for call in (0, NUM_CALLS - 1)]
        candidate_draws = _read_draws(directory, messages, DRAWS)
        eager_draws = _read_draws(directory, messages, EAGER_DRAWS)
        keys = next(iter(read_keys(directory, messages)), None)
    except HandoverError as error:
        return Verdict(ending="crash", phase="run", message=str(error))
    if not expected:
        return Verdict(ending="nothing")
    for actual in calls:
        reason, message = find_mismatch(expected, actual)
        if reason is not Reason.NONE:
            return Verdict(ending="mismatch", phase="run", error_type=reason, message=message)
    settled = SettledCalls([(expected, actual) for actual in calls])
    written = read_written(messages.get(WRITTEN))
    if orders is not None:
        orders = orders.with_written(written)
        settled = settle(settled.calls, orders, [keys] * len(calls))
    rows = compare_calls(settled.calls)
    decisive: dict[str, Any] = {}
    random = RandomVerdict()
    if plan is not None:
        plan = plan.with_written(written)
        random = judge_random_outputs(rows, settled.calls, plan, candidate_draws, eager_draws)
        decisive = min(
            (row for row in rows if row["p_value"] is not None),
            key=lambda row: row["p_value"],
            default={},
        )
    if why_open := settled.take(rows, random.places):
        for place in settled.open_outputs:  # the order of ties is unspecified
            rows[place]["min_t"] = -math.inf
    finite = [not nan + infinite for nan, infinite in count_not_finite(expected)]
    figures = ("speedup", "speedup_low", "speedup_high", "lost_ms")
    times: dict[str, Any] = {
        name: float(messages[name]) for name in figures if messages.get(name) is not None
    }
    return Verdict(
        ending="compared",
        phase="run",
        message=why_open or "",
        min_t=overall_min_t(rows),
        random_test=decisive.get("random_test"),
        p_value=decisive.get("p_value"),
        is_not_finite=any(
            was_finite and nan + infinite
            for actual in calls
            for was_finite, (nan, infinite) in zip(finite, count_not_finite(actual), strict=True)
        ),
        **times,
    )


def _read(directory: Path, messages: Mapping[str, Any], name: str) -> list[Output]:
    return read_outputs(directory / f"{name}.bin", messages.get(f"outputs {name}"))


def _read_draws(directory: Path, messages: Mapping[str, Any], name: str) -> list[Drawn] | None:
    """Return the outputs of repeated calls; None without repeated calls or if shapes differ."""
    if name not in messages or messages[name].get("described") is None:
        return None
    return read_draws(directory / name, messages[name]["described"], read_drawn(messages[name]))


class Trials:
    """Trials of parts of one graph under one compiler, with a cache on disk and a budget.

    Each trial appends a line of JSON to a file in `out`, so an interrupted bisection can resume.
    """

    def __init__(
        self,
        sample: Sample,
        candidate: CandidateCompiler,
        runner: TrialRunner,
        settings: Settings,
        device: str,
        out: Path,
        *,
        is_timed: bool,
        budget: Budget,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.sample, self._candidate, self._runner = sample, candidate, runner
        self._is_timed, self._budget = is_timed, budget
        self._on_progress = on_progress
        self.doing = ""
        self.num_ops = sample.num_ops
        self.num_trials = self.num_known = 0
        self._started_s = time.monotonic()
        self._stack = contextlib.ExitStack()
        self._place = self._stack.enter_context(temporary_directory("graphnet-values-"))
        self._identity = {
            "compiler": candidate.compiler,
            "version": candidate.version,
            "source": candidate.source,
            "options": dict(candidate.options),
            "settings": settings.to_json(),
            "environment": environment_id(describe_environment(device)),
            "is_timed": is_timed,
        }
        self._whole = sample_digest(sample)
        self._seed, self._threads = settings.seed, settings.threads
        self._trust_remote_code = settings.trust_remote_code
        self._file = out / TRIALS_FILE
        self._known = _read_trials(self._file)
        self._from_before = set(self._known)
        self._values: dict[int, Stored] | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the bisection began."""
        return time.monotonic() - self._started_s

    @property
    def values(self) -> dict[int, Stored]:
        """The tensors of the whole graph under eager that were stored within the space limit.

        Raises:
            BisectionError: The graph fails under eager.
        """
        if self._values is None:
            self._values = self._runner.store_values(
                self.sample,
                self._seed,
                self._place,
                self._threads,
                trust_remote_code=self._trust_remote_code,
            )
        return self._values

    @property
    def compiler(self) -> str:
        """The name of the compiler."""
        return self._candidate.compiler

    def stored(self, value: int) -> int | None:
        """Return `value` if its elements are stored, else None."""
        return value if value in self.values else None

    def with_elements(self, piece: Piece) -> Sample:
        """Return the sample of a piece with the elements of the trial stored in it."""
        return with_elements(piece.sample, self._files(piece))

    def _files(self, piece: Piece) -> tuple[FileOf | None, ...]:
        return tuple(None if value is None else self.values[value].file for value in piece.values)

    def close(self) -> None:
        """Remove the values."""
        self._stack.close()

    def fails(self, failure: Failure, piece: Piece) -> bool:
        """Return whether a piece fails in the same way as the whole graph.

        Raises:
            BudgetSpentError: The budget is spent and the verdict is not known yet.
        """
        return failure.is_met_by(self.verdict(piece))

    def verdict(self, piece: Piece) -> Verdict:
        """Return the verdict of a piece, from the cache if possible.

        Raises:
            BudgetSpentError: The budget is spent and the verdict is not known yet.
        """
        key = hash_json([sample_digest(piece.sample), self._whole, piece.values, self._identity])
        if key in self._known:
            self.num_known += key in self._from_before
            self._from_before.discard(key)
            self._tell()
            return self._known[key]
        if self.num_trials >= self._budget.trials or self.seconds >= self._budget.seconds:
            raise BudgetSpentError
        verdict = self._runner.run_trial(
            piece.sample, self._files(piece), self._candidate, is_timed=self._is_timed
        )
        self.num_trials += 1
        self._known[key] = verdict
        if (verdict.ending, verdict.phase) != ("baseline", "load"):  # more memory could fix these
            self._store(key, piece, verdict)
        self._tell()
        return verdict

    def _store(self, key: str, piece: Piece, verdict: Verdict) -> None:
        line = {"trial": key, "num_ops": piece.sample.num_ops, **verdict.to_json()}
        try:
            append_json(self._file, line)
        except OSError as error:
            raise DiskError(
                f"The trials cannot be written to `{self._file}`: {error.strerror}."
            ) from error

    def _tell(self) -> None:
        if self._on_progress is not None:
            self._on_progress(
                Progress(self.doing, self.num_trials, self.num_known, self.num_ops, self.seconds)
            )


def _read_trials(path: Path) -> dict[str, Verdict]:
    verdicts: dict[str, Verdict] = {}
    for fields in read_journal(path):
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            key = fields.pop("trial")
            del fields["num_ops"]
            verdicts[str(key)] = Verdict.from_json(fields)
    return verdicts
