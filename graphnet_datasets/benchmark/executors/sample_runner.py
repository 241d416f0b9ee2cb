"""The parent of a sample's processes: starts them, monitors them and creates their records."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...atomic import write_text
from ...compilers import Compiler
from ...compilers.carrying import set_environment
from ...compilers.replacement import is_replacement
from ...errors import RunError
from ...frameworks import FRAMEWORK_VARIABLE, framework_named
from ...isolation import Ending, ForkServer, Limits, Outcome
from ...sample import Sample
from ...schema import Status
from ...schema.sample_files import write_row
from ...timing.heap import KEPT_HEAP
from ..draw_plan import plan_draws
from ..handover import (
    CANDIDATE_PHASES,
    COMPILERS_VARIABLE,
    EAGER_PHASES,
    OPTIONS_VARIABLE,
    JudgedCall,
)
from ..judging import floors, judging
from ..judging.eager_alone import EagerAlone
from ..judging.endings import is_harness_failure
from ..judging.roofline import PeakRates, load_peak_rates, store_peak_rates
from ..judging.times import take_noise
from ..judging.varied_calls import EagerVaried
from ..records.records import sample_digest
from ..settings import Settings
from ..time_spent import JUDGE, STAND_STILL, START
from ..worker_job import Kind, WorkerJob
from .collecting import read_candidate, read_eager_alone, read_run
from .jobs import CandidateCompiler, OnPhase, SampleJob, TakeOutputs
from .known_candidates import candidate_key, load_candidate, store_candidate
from .overlap import Lane, TimingGate
from .passage import Passage, need_bytes
from .turns import look_again, time_again
from .varied_calls import vary_calls

SERVER = "graphnet_datasets.benchmark.child.worker"
"""The module that serves the jobs of any framework."""

_GPU_PEAKS_LOCK = threading.Lock()

_CROWDED_ENDINGS = (Ending.TIMEOUT, Ending.OUT_OF_MEMORY)
"""Endings of a job that other running samples may have caused."""


class SampleRunner:
    """Run samples on one device, each under each compiler in a separate process.

    `log_directory`, if given, receives the printed output of failed runs. `compilers` are the
    compilers that will be requested, so that they can inspect the machine once for all runs.
    `take_outputs`, if given, receives the outputs of each `ok` run on the first input set. `again`
    are calls whose inputs the first pairs repeat (`benchmark.again`). `origins`, if given, are the
    servers by framework that the servers of several runners are forks of; missing ones are added.
    """

    server_module = SERVER
    """The module of the processes that it starts; a subclass may use its own for these jobs."""

    def __init__(
        self,
        device: str,
        settings: Settings,
        environment: tuple[str, str] = ("", "{}"),
        log_directory: Path | None = None,
        compilers: Sequence[str] = (),
        take_outputs: TakeOutputs | None = None,
        again: Sequence[JudgedCall] = (),
        origins: dict[str, ForkServer] | None = None,
    ) -> None:
        self._origins = origins
        self.lane: Lane | None = None
        self._shown: tuple[str, str, str] | None = None
        self._again = tuple(again)
        self._take_outputs = take_outputs
        self._device, self._settings = device, settings
        self._environment_id, self._environment = environment
        self._log_directory = log_directory
        self._compilers = tuple(compilers)
        self.limits = self._limits = settings.limits(device)
        self._servers: dict[str, ForkServer] = {}
        self.on_phase: OnPhase = lambda *_: None
        self._options: Mapping[str, Any] = {}
        self._is_closed = False
        self._peaks: tuple[PeakRates | None, ...] = ()
        self._fitting: Sample | None = None

    def join(self, gate: TimingGate, first: SampleRunner | None = None) -> None:
        """Overlap samples with other runners at this gate (see `overlap`).

        Records must then be taken within `at_work`. `first` is a runner that has already inspected
        the compilers.
        """
        self.lane = gate.lane(self._all_servers, self._tell_pause)
        if first is not None:
            self._options = first._options

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Be at work as a lane of the gate, if there is one, except while a process runs."""
        lane = self.lane
        if lane is None:
            yield
            return
        lane.gate.begin_work(lane)
        try:
            yield
        finally:
            lane.gate.end_work(lane)

    def close(self) -> None:
        """End all processes."""
        self._is_closed = True
        servers, self._servers = self._servers, {}  # a concurrent `close` finds no servers
        for server in servers.values():
            server.close()

    def find_candidate(
        self, compiler: str, framework: str, options: Mapping[str, Any]
    ) -> CandidateCompiler:
        """Inspect a compiler in a separate process, and return it with all its options.

        A description in the user's cache is used instead if nothing that determines it has changed.

        Raises:
            CompilerError: the compiler or option does not exist, or the compiler cannot run here.
        """
        candidate = CandidateCompiler(compiler, framework, dict(options), "")
        self._options = dict(options)
        key = candidate_key(candidate, self._device, self._environment)
        if (stored := load_candidate(key, candidate)) is not None:
            return stored
        server = self._server(framework)
        with server.directory() as directory:
            worker_job = self.make_worker_job(candidate, "compiler")
            payload = worker_job.to_payload()
            limits = Limits(default_timeout_s=self._limits.timeout_s("compile"))
            outcome = server.run(
                payload,
                directory,
                phases=("compiler",),
                limits=limits,
                reads=worker_job.reads,
                executes=worker_job.executes,
            )
        described = read_candidate(outcome, candidate, self._device)
        is_on_known_device = self._device == "cpu" or json.loads(self._environment).get("gpu")
        if is_on_known_device and outcome.merged().get("is_reusable") is True:
            store_candidate(key, described)
        return described

    def run(self, job: SampleJob) -> list[dict[str, Any]]:
        """Run a sample under each of its candidates and return a record for each."""
        return list(self.records(job))

    def records(self, job: SampleJob) -> Iterator[dict[str, Any]]:
        """Run a sample under its candidates and yield each record as soon as it is made.

        The reference outputs are computed after the candidate has ended, on inputs that were drawn
        while it ran. Only those of the first call are the same for all candidates.
        """
        with self._admitted(job):
            try:
                yield from self._records(job)
            finally:
                self._shown = None

    def _records(self, job: SampleJob) -> Iterator[dict[str, Any]]:
        eager_alone: EagerAlone | None = None
        looks: list[EagerAlone] = []
        eager_varied: dict[bool, EagerVaried] = {}
        for run_id, candidate in job.candidates:
            run = self._run_candidate(job, run_id, candidate)
            if run.has_outputs:
                eager_alone, attempts = self._run_eager_alone(job, candidate, run, eager_alone)
                run.judge(eager_alone)
                run.record["num_attempts"] = max(run.record["num_attempts"], attempts)
                if run.is_doubted:
                    look_again(self, job, candidate, run, looks)
                if run.is_doubted:
                    run = time_again(self, job, run_id, candidate, run, eager_alone)
                if run.record["status"] == Status.OK:
                    self._take_floor(job, run.record, eager_alone)
                    if self._take_outputs is not None and run.first is not None:
                        self._take_outputs(job, run.record, run.first)
                    if self._settings.num_variations:
                        # Only compilers are called with other literals.
                        key = is_replacement(candidate.compiler)
                        eager_varied[key] = vary_calls(
                            self, job, candidate, run.record, eager_varied.get(key)
                        )
            if run.record["speedup"] is not None:
                take_noise(run.record)  # its interval may have been widened
            yield run.record

    def _take_floor(self, job: SampleJob, record: dict[str, Any], eager_alone: EagerAlone) -> None:
        output_bytes = sum(output.elements.nbytes for output in eager_alone.first)
        num_bytes = floors.least_bytes(job.sample, output_bytes)
        if floors.is_worth_a_floor(job.row.get("flops"), num_bytes):
            peaks = self._find_peak_rates()
            if peaks is not None:
                raised = floors.take_floor(
                    record, job.row, num_bytes, peaks, self._measure_peak_rates
                )
                if raised != peaks:
                    store_peak_rates(raised)
                    self._peaks = (raised,)

    def _find_peak_rates(self) -> PeakRates | None:
        """Return the device's peak rates; a CPU's rates from a busy machine are measured once more.

        On a GPU, one of several lanes measures while the others wait.
        """
        if not self._peaks and framework_named("torch").is_installed:
            is_of_gpu = self.lane is not None and self.lane.gate.is_of_gpu
            with _GPU_PEAKS_LOCK if is_of_gpu else contextlib.nullcontext():
                peaks = load_peak_rates(*self._peaks_key)
                if peaks is None or not (peaks.is_quiet or is_of_gpu):
                    measured = self._measure_peak_rates()
                    if measured is not None:
                        peaks = measured if peaks is None else peaks.raised(measured)
                        store_peak_rates(peaks)
            self._peaks = (peaks,)
        return self._peaks[0] if self._peaks else None

    @property
    def _peaks_key(self) -> tuple[str, str, int]:
        return self._device, self._environment_id, self._settings.threads

    def _measure_peak_rates(self) -> PeakRates | None:
        """Measure the device's peak rates in a separate process, with all lanes stopped."""
        server = self._server("torch")
        worker_job = WorkerJob(kind="peaks", device=self._device, settings=self._machine_settings)
        with self.timed(), server.directory() as directory:
            outcome = server.run(
                worker_job.to_payload(),
                directory,
                phases=("peaks",),
                limits=Limits(default_timeout_s=60),
            )
        if outcome.ending is not Ending.FINISHED:
            return None
        return PeakRates(*self._peaks_key, **outcome.merged())

    def _run_candidate(
        self, job: SampleJob, run_id: str, candidate: CandidateCompiler
    ) -> judging.Run:
        """Run a candidate, and again if its calls change state in which eager runs."""
        run = self._run_unsuspected(job, run_id, candidate)
        if not run.has_changed_state:
            return run
        repeated = self._run_unsuspected(job, run_id, candidate, restores_state=True)
        repeated.take_changes(run)
        return repeated

    def _run_unsuspected(
        self,
        job: SampleJob,
        run_id: str,
        candidate: CandidateCompiler,
        *,
        restores_state: bool = False,
    ) -> judging.Run:
        """Run a candidate, and again without other samples while its times are suspected."""
        runs = [self._run_once(job, run_id, candidate, restores_state=restores_state)]
        while runs[-1].suspicions and len(runs) < judging.MAX_SUSPECTED:
            lane = self.lane
            with contextlib.nullcontext() if lane is None else lane.gate.alone(lane):
                runs.append(self._run_once(job, run_id, candidate, restores_state=restores_state))
        return judging.settle_suspicion(runs)

    def _run_once(
        self,
        job: SampleJob,
        run_id: str,
        candidate: CandidateCompiler,
        *,
        restores_state: bool = False,
    ) -> judging.Run:
        record = self.begin_record(job, run_id, candidate)
        worker_job = dataclasses.replace(
            self.make_worker_job(candidate, "candidate"),
            plan=plan_draws(job.row, job.sample),
            restores_state=restores_state,
        )
        with self._attempts(job, worker_job) as (outcome, directory, num_attempts):
            record["num_attempts"] = num_attempts
            run = judging.Run(record, outcome, plan=worker_job.plan)
            read_run(run, outcome, directory)
        if not run.has_outputs:
            self._keep_log(run_id, outcome)
        return run

    def _run_eager_alone(
        self,
        job: SampleJob,
        candidate: CandidateCompiler,
        run: judging.Run,
        earlier: EagerAlone | None,
    ) -> tuple[EagerAlone, int]:
        """Repeat the calls of a run with eager; results in `earlier` are reused."""
        if earlier is not None and earlier.problem is not None:
            earlier = None
        worker_job = dataclasses.replace(
            self.make_worker_job(candidate, "eager_alone"),
            judged=tuple(run.calls),
            draws=run.drawn_calls,
            is_first=earlier is None,
            is_fresh=run.is_fresh,
        )
        with self._attempts(job, worker_job) as (outcome, directory, num_attempts):
            eager_alone = read_eager_alone(outcome, directory, run, earlier, job.sample)
        return eager_alone, num_attempts

    @contextlib.contextmanager
    def _attempts(
        self, job: SampleJob, worker_job: WorkerJob
    ) -> Iterator[tuple[Outcome, Path, int]]:
        """Run a job, and yield its outcome, directory and attempt number.

        The job runs again if the worker was lost before eager had run. If it ran out of memory or
        time while another sample was running, it runs again without other samples.
        """
        lane, is_crowded = self.lane, False
        for num_attempts in (1, 2):
            with contextlib.ExitStack() as stack:
                if lane is not None and is_crowded:
                    stack.enter_context(lane.gate.alone(lane))
                directory = stack.enter_context(self._directory(job))
                outcome = self._start(job, worker_job, directory)
                is_crowded = (
                    lane is not None and lane.had_company and outcome.ending in _CROWDED_ENDINGS
                )
                if num_attempts == 2 or not (is_crowded or is_harness_failure(outcome)):
                    yield outcome, directory, num_attempts
                    return

    def _start(
        self, job: SampleJob, worker_job: WorkerJob, directory: Path, role: str = ""
    ) -> Outcome:
        cache = directory / "cache"
        temporary = directory / "tmp"
        temporary.mkdir()
        is_eager_alone = worker_job.kind == "eager_alone"
        name = worker_job.compiler.rpartition(":")[2]
        # If the system limits the worker's memory, one check per sample is enough.
        is_known_to_fit = self._fitting is job.sample and self._limits.is_memory_enforced
        worker_job = dataclasses.replace(worker_job, is_known_to_fit=is_known_to_fit)

        def tell(phase: str) -> None:
            self._tell(job.sample.id, name, f"eager alone {phase}" if is_eager_alone else phase)

        self._tell(job.sample.id, name, START)
        server = self._server(job.sample.framework, role)
        passage = Passage(self.lane, worker_job.kind, directory, tell)
        worker_job = dataclasses.replace(worker_job, turnstile=passage.pipe)
        outcome = passage.run(
            server,
            worker_job.to_payload(),
            directory,
            phases=EAGER_PHASES if is_eager_alone else CANDIDATE_PHASES,
            limits=self._limits,
            environment={
                **Compiler.cache_environment(cache),
                "TMPDIR": str(temporary),
                "XDG_CACHE_HOME": str(cache),
                "CUDA_CACHE_PATH": str(cache / "cuda"),
                "TORCH_EXTENSIONS_DIR": str(cache / "extensions"),
            },
            reads=worker_job.reads,
            writes=worker_job.writes,
            executes=worker_job.executes,
        )
        self._tell(job.sample.id, name, JUDGE)
        if outcome.phase != "load":
            self._fitting = job.sample
        return outcome

    def _tell(self, sample_id: str, compiler: str, phase: str) -> None:
        self._shown = sample_id, compiler, phase
        self.on_phase(sample_id, compiler, phase)

    def _tell_pause(self, is_paused: bool) -> None:
        if self._shown is not None:
            sample_id, compiler, phase = self._shown
            self.on_phase(sample_id, compiler, STAND_STILL if is_paused else phase)

    def _all_servers(self) -> list[ForkServer]:
        return list(self._servers.values())

    def timed(self) -> contextlib.AbstractContextManager[None]:
        """Stop everything of other runners during the context."""
        lane = self.lane
        return contextlib.nullcontext() if lane is None else lane.gate.timed(lane)

    def _admitted(self, job: SampleJob) -> contextlib.AbstractContextManager[None]:
        lane = self.lane
        if lane is None:
            return contextlib.nullcontext()
        return lane.gate.admitted(lane, need_bytes(job.row))

    @contextlib.contextmanager
    def _directory(self, job: SampleJob, role: str = "") -> Iterator[Path]:
        with self._server(job.sample.framework, role).directory() as directory:
            write_row(job.row, directory)
            yield directory

    @property
    def _machine_settings(self) -> Settings:
        """The settings with the machine-dependent values filled in."""
        return dataclasses.replace(
            self._settings,
            num_threads=self._settings.threads,
            memory_limit_bytes=self._limits.memory_bytes,
        )

    def make_worker_job(self, candidate: CandidateCompiler, kind: Kind) -> WorkerJob:
        """Return a worker job of this runner, without the fields of a single run."""
        return WorkerJob(
            kind=kind,
            device=self._device,
            settings=self._machine_settings,
            framework=candidate.framework,
            compiler=candidate.reference,
            options=dict(candidate.options),
            again=self._again,
            compile_cache=self._settings.compile_cache or "",
        )

    def _server(self, framework: str, role: str = "") -> ForkServer:
        """Return the server of a framework; there is one for each role at a time."""
        if self._is_closed:  # closed by another thread, which ended the current job
            raise RunError("The runner is closed. Create another runner.")
        if framework + role not in self._servers:
            library = framework_named(framework)
            if not library.is_installed:
                raise library.missing(f"Running samples of {framework}")
            environment = self._server_environment(framework)
            if self._origins is None:
                server = ForkServer(self.server_module, environment=environment)
            else:
                origin = self._origins.setdefault(
                    framework, ForkServer(self.server_module, environment=environment)
                )
                server = ForkServer(self.server_module, environment=environment, origin=origin)
            self._servers[framework + role] = server
        return self._servers[framework + role]

    def _server_environment(self, framework: str) -> dict[str, str]:
        threads = str(self._settings.threads)
        environment = {
            FRAMEWORK_VARIABLE: framework,
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            # NumPy would request huge pages for the inputs and weights that it draws, and
            # for arrays that reuse their memory. Calls on huge pages are a few percent
            # faster. A deployed model has no memory from NumPy.
            "NUMPY_MADVISE_HUGEPAGE": "0",
            **KEPT_HEAP,
            COMPILERS_VARIABLE: ",".join(self._compilers),
            OPTIONS_VARIABLE: json.dumps(dict(self._options)),
            # Otherwise checking for a GPU would initialize CUDA before the fork.
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        }
        set_environment(environment)
        return environment

    def begin_record(
        self, job: SampleJob, run_id: str, candidate: CandidateCompiler
    ) -> dict[str, Any]:
        """Return the record of a run with everything known before it."""
        settings = self._settings
        started = datetime.datetime.now(datetime.UTC)
        return judging.begin_record(
            job.row,
            run_id=run_id,
            sample_digest=sample_digest(job.sample),
            compiler=candidate.compiler,
            compiler_version=candidate.version,
            compiler_source=candidate.source or None,
            compiler_options=candidate.options,
            device=self._device,
            settings=settings.to_json(),
            settings_hash=settings.hash(),
            num_threads=settings.threads,
            environment_id=self._environment_id,
            environment=self._environment,
            started_at=started.isoformat(timespec="microseconds"),
        )

    def _keep_log(self, run_id: str, outcome: Outcome) -> None:
        if self._log_directory is not None and outcome.log:
            self._log_directory.mkdir(parents=True, exist_ok=True)
            write_text(self._log_directory / f"{run_id}.log", outcome.log)
