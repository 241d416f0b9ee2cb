"""Compiling and timing candidates: compiling in many processes, timing in one and alone."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from ...atomic import temporary_directory, write_bytes
from ...errors import GraphNetError
from ...isolation import Ending, ForkServer, Limits, LocalPool, PoolJob, Work, num_processors
from ..codegen.program import Program
from ..codegen.toolchain import (
    PHASES,
    WORKER,
    compile_payload,
    object_directory,
    object_key,
)
from ..compiling import generate
from ..kernel import storage_dtype
from ..language.instance import Instance, Tensor
from ..language.interpreter import interpret
from ..options import Options
from .config import Candidate, TunerConfig

MEASURED = ("load", "run", "check", "time")
FIRST_RUN_MS = 20.0
"""What a first run may take more than others: threads start, memory is touched first."""

MEASURE_WORKER = "graphnet_datasets.tensor_comprehensions.tuner.measure_worker"
_TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "uint16": 3e-2}
"""Of the scale of an output: what sums in another order may differ by, and no more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """A candidate whose C has been generated."""

    options: Options
    program: Program
    threads: int
    key: str


class Evaluator:
    """Compiles, checks and times candidates for one instance on given inputs.

    Candidates that come to the same code are timed once. Use as a context manager: it holds
    processes and a directory.
    """

    def __init__(
        self,
        instance: Instance,
        inputs: Sequence[Any],
        config: TunerConfig,
        outputs: dict[str, Any] | None = None,
    ) -> None:
        self._instance, self._config = instance, config
        self._known: dict[str, Candidate] = {}
        workers = config.compile_workers or num_processors()
        limits = Limits(default_timeout_s=config.timeout_s, memory_bytes=2 << 30, max_processes=16)
        with contextlib.ExitStack() as stack:  # a full disk leaves neither files nor processes
            directory = stack.enter_context(temporary_directory("graphnet-tc-"))
            self._path = Path(directory)
            self._tensors = self._store(inputs, outputs or {})
            self._server = ForkServer(MEASURE_WORKER)
            stack.callback(self._server.close)
            self._pool = LocalPool(Work(WORKER, PHASES, limits), workers)
            stack.callback(self._pool.close)
            self._opened = stack.pop_all()
        self.start = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._opened.close()

    def remember(self, candidate: Candidate) -> None:
        """Take a candidate's times as known, so that the same code is not timed again."""
        if candidate.source_hash:
            self._known[candidate.source_hash] = candidate

    def evaluate(self, generation: Sequence[Options], best_ms: float) -> Iterator[Candidate]:
        """Yield each of the options with its times, or with why it has none."""
        made: list[Made | Candidate] = [self._generate(each) for each in generation]
        failures = self._compile([each for each in made if isinstance(each, Made)])
        for each in made:
            if isinstance(each, Candidate):
                yield each
                continue
            known = self._known.get(each.key)
            if known is None:
                reason = failures.get(each.key, "")
                known = Candidate(each.options, error=reason, source_hash=each.key)
                if not reason:
                    known = self._measure(each, best_ms)
                self._known[each.key] = known
                best_ms = min(best_ms, known.median_ms)
            at = time.perf_counter() - self.start
            yield dataclasses.replace(known, options=each.options, at_s=at)

    def again(self, candidate: Candidate) -> Candidate:
        """Return a candidate that ran with the times of another run."""
        made = self._generate(candidate.options)
        if isinstance(made, Candidate):
            return made
        return dataclasses.replace(self._measure(made, float("inf")), at_s=candidate.at_s)

    def _generate(self, options: Options) -> Made | Candidate:
        try:
            made = generate(self._instance, options)
            key = object_key(made.program, options.compiler, options.extra_flags)
        except GraphNetError as error:
            return Candidate(options, error=str(error), at_s=time.perf_counter() - self.start)
        return Made(options, made.program, made.threads, key)

    def _compile(self, made: Sequence[Made]) -> dict[str, str]:
        """Compile what has no object yet; return why each failure failed."""
        waiting: dict[str, PoolJob] = {}
        for each in made:
            is_there = (object_directory() / f"{each.key}.so").is_file()
            if each.key in self._known or each.key in waiting or is_there:
                continue
            source = self._path / f"{each.key}.c"
            source.write_text(each.program.source)
            options = each.options
            payload = compile_payload(each.program, options.compiler, options.extra_flags, source)
            waiting[each.key] = PoolJob(each.key, payload, reads=(str(source),))
        failures: dict[str, str] = {}
        for done in self._pool.run(waiting.values()):
            if done.result is None:
                failures[done.job.name] = done.reason or "The compiler wrote nothing."
                continue
            write_bytes(object_directory() / f"{done.job.name}.so", done.result)
        return failures

    def _measure(self, made: Made, best_ms: float) -> Candidate:
        config = self._config
        payload = {
            "object": str(object_directory() / f"{made.key}.so"),
            "tensors": self._tensors,
            "threads": made.threads,
            "num_runs": config.num_runs,
            "num_warm_up": config.num_warm_up,
            "budget_ms": config.run_budget_s * 1e3,
            "limit_ms": min(best_ms, 1e12) * config.drop_factor + FIRST_RUN_MS,
        }
        # What would be dropped is not waited for.
        first_run_s = min(config.timeout_s, 1.0 + 2e-3 * payload["limit_ms"])
        limits = Limits(
            phase_timeouts_s={"run": first_run_s},
            default_timeout_s=config.timeout_s,
            memory_bytes=config.memory_bytes,
        )
        with self._server.directory() as directory:
            reads = (str(self._path), payload["object"])
            outcome = self._server.run(
                payload, directory, phases=MEASURED, limits=limits, reads=reads
            )
        said = outcome.merged()
        error = str(said.get("error", ""))
        if outcome.ending is not Ending.FINISHED:
            reason = (outcome.error or {}).get("message", "") or outcome.log[-200:]
            error = f"{outcome.ending} while it ran: {reason}".strip()
        times = tuple(float(each) for each in said.get("times_ms", ())) if not error else ()
        if not times and not error:
            error = "It reported no times."
        return Candidate(made.options, times, error, made.key)

    def _store(self, inputs: Sequence[Any], outputs: dict[str, Any]) -> list[dict[str, Any]]:
        """Write inputs and wanted outputs to files, once for all candidates."""
        wanted = iter(interpret(self._instance, inputs, outputs, float64=True))
        given = iter(inputs)
        described = []
        for place, tensor in enumerate(self._instance.tensors):
            dtype = storage_dtype(tensor)
            entry: dict[str, Any] = {
                "name": tensor.name,
                "role": tensor.role,
                "shape": list(tensor.shape),
                "strides": list(tensor.strides),
                "dtype": str(dtype),
                "file": "",
            }
            if tensor.role == "input":
                entry["file"] = self._write(f"in{place}", _stored(tensor, next(given)))
            elif tensor.role == "output":
                entry["wanted"] = self._write(f"out{place}", next(wanted))
                entry["tolerance"] = _TOLERANCES.get(str(dtype), 0.0)
                if tensor.name in outputs:
                    entry["file"] = self._write(
                        f"was{place}", _stored(tensor, outputs[tensor.name])
                    )
            described.append(entry)
        return described

    def _write(self, name: str, array: Any) -> str:
        path = self._path / f"{name}.npy"
        np.save(path, np.asarray(array), allow_pickle=False)
        return str(path)


def _stored(tensor: Tensor, array: Any) -> Any:
    array = np.asarray(array)
    if tensor.dtype.name == "bfloat16" and array.dtype == np.float32:
        return (array.view(np.uint32) >> 16).astype(np.uint16)
    return array
