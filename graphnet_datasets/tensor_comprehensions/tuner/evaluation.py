"""Evaluation of candidates: parallel compilation, then timing in a single process."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...atomic import temporary_directory, write_bytes
from ...errors import GraphNetError
from ...isolation import Ending, ForkServer, Limits, LocalPool, PoolJob, Work, num_processors
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
"""Overhead of a first run: starting threads and touching memory."""

MEASURE_WORKER = "graphnet_datasets.tensor_comprehensions.tuner.measure_worker"
TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "uint16": 3e-2}
"""Allowed error relative to the scale of an output, for sums in a different order."""


@dataclasses.dataclass(frozen=True, slots=True)
class Made:
    """A candidate with generated code: a `Program` of C, or a `TritonProgram`."""

    options: Options
    program: Any
    threads: int
    key: str


class Evaluator:
    """Compiles, checks and times candidates for one instance and fixed inputs.

    Candidates with equal code are timed once. Use it as a context manager: it owns processes and
    a directory.
    """

    _worker = MEASURE_WORKER
    _is_memory_enforced = True

    def __init__(
        self,
        instance: Instance,
        inputs: Sequence[Any],
        config: TunerConfig,
        outputs: dict[str, Any] | None = None,
    ) -> None:
        self._instance, self._config = instance, config
        self._known: dict[str, Candidate] = {}
        with contextlib.ExitStack() as stack:  # clean up if a step fails, e.g. on a full disk
            directory = stack.enter_context(temporary_directory("graphnet-tc-"))
            self._path = Path(directory)
            self._tensors = self._store(inputs, outputs or {})
            self._server = ForkServer(self._worker)
            stack.callback(self._server.close)
            self._open_compilers(stack)
            self._opened = stack.pop_all()
        self.start = time.perf_counter()

    def _open_compilers(self, stack: contextlib.ExitStack) -> None:
        """Start the processes that compile candidates."""
        config = self._config
        limits = Limits(default_timeout_s=config.timeout_s, memory_bytes=2 << 30, max_processes=16)
        workers = config.compile_workers or num_processors()
        self._pool = LocalPool(Work(WORKER, PHASES, limits), workers)
        stack.callback(self._pool.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def remember(self, candidate: Candidate) -> None:
        """Store the times of a candidate, so that equal code is not timed again."""
        if candidate.source_hash:
            self._known[candidate.source_hash] = candidate

    def evaluate(self, generation: Sequence[Options], best_ms: float) -> Iterator[Candidate]:
        """Yield a candidate for each of the options, with its times or its error."""
        generated: list[Made | Candidate] = [self._generate(options) for options in generation]
        failures = self._compile(
            [candidate for candidate in generated if isinstance(candidate, Made)]
        )
        for candidate in generated:
            if isinstance(candidate, Candidate):
                yield candidate
                continue
            result = self._known.get(candidate.key)
            if result is None:
                reason = failures.get(candidate.key, "")
                result = Candidate(candidate.options, error=reason, source_hash=candidate.key)
                if not reason:
                    result = self._measure(candidate, best_ms)
                self._known[candidate.key] = result
                best_ms = min(best_ms, result.median_ms)
            at = time.perf_counter() - self.start
            yield dataclasses.replace(result, options=candidate.options, at_s=at)

    def time_again(self, candidate: Candidate) -> Candidate:
        """Time a candidate again and return it with the new times."""
        generated = self._generate(candidate.options)
        if isinstance(generated, Candidate):
            return generated
        return dataclasses.replace(self._measure(generated, float("inf")), at_s=candidate.at_s)

    def _generate(self, options: Options) -> Made | Candidate:
        try:
            generated = generate(self._instance, options)
            key = object_key(generated.program, options.compiler, options.extra_flags)
        except GraphNetError as error:
            return Candidate(options, error=str(error), at_s=time.perf_counter() - self.start)
        return Made(options, generated.program, generated.threads, key)

    def _compile(self, generated: Sequence[Made]) -> dict[str, str]:
        """Compile programs that have no object yet; return the reasons of failures."""
        waiting: dict[str, PoolJob] = {}
        for candidate in generated:
            is_there = (object_directory() / f"{candidate.key}.so").is_file()
            if candidate.key in self._known or candidate.key in waiting or is_there:
                continue
            source = self._path / f"{candidate.key}.c"
            source.write_text(candidate.program.source)
            options = candidate.options
            payload = compile_payload(
                candidate.program, options.compiler, options.extra_flags, source
            )
            waiting[candidate.key] = PoolJob(candidate.key, payload, reads=(str(source),))
        failures: dict[str, str] = {}
        for finished in self._pool.run(waiting.values()):
            if finished.result is None:
                failures[finished.job.name] = finished.reason or "The compiler produced no output."
                continue
            write_bytes(object_directory() / f"{finished.job.name}.so", finished.result)
        return failures

    def _measure(self, generated: Made, best_ms: float) -> Candidate:
        config = self._config
        code, files = self._code(generated)
        payload = {
            **code,
            "tensors": self._tensors,
            "num_runs": config.num_runs,
            "num_warm_up": config.num_warm_up,
            "budget_ms": config.run_budget_s * 1e3,
            "limit_ms": min(best_ms, 1e12) * config.drop_factor + FIRST_RUN_MS,
        }
        # A candidate that would be dropped is stopped early.
        first_run_s = min(config.timeout_s, 1.0 + 2e-3 * payload["limit_ms"])
        limits = Limits(
            phase_timeouts_s={"run": first_run_s},
            default_timeout_s=config.timeout_s,
            memory_bytes=config.memory_bytes,
            is_memory_enforced=self._is_memory_enforced,
        )
        with self._server.directory() as directory:
            outcome = self._server.run(
                payload, directory, phases=MEASURED, limits=limits, reads=(str(self._path), *files)
            )
        report = outcome.merged()
        error = str(report.get("error", ""))
        if outcome.ending is not Ending.FINISHED:
            reason = (outcome.error or {}).get("message", "") or outcome.log[-200:]
            error = f"{outcome.ending} during the run: {reason}".strip()
        times = tuple(float(time_ms) for time_ms in report.get("times_ms", ())) if not error else ()
        if not times and not error:
            error = "It reported no times."
        return Candidate(generated.options, times, error, generated.key)

    def _code(self, generated: Made) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the worker's description of a candidate's code, and the files that it reads."""
        path = str(object_directory() / f"{generated.key}.so")
        return {"object": path, "threads": generated.threads}, (path,)

    def _store(self, inputs: Sequence[Any], outputs: dict[str, Any]) -> list[dict[str, Any]]:
        """Write the inputs and expected outputs to files, shared by all candidates."""
        expected = iter(interpret(self._instance, inputs, outputs, float64=True))
        values = iter(inputs)
        entries = []
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
                entry["file"] = self._write(f"in{place}", stored(tensor, next(values)))
            elif tensor.role == "output":
                entry["wanted"] = self._write(f"out{place}", next(expected))
                entry["tolerance"] = TOLERANCES.get(str(dtype), 0.0)
                if tensor.name in outputs:
                    entry["file"] = self._write(f"was{place}", stored(tensor, outputs[tensor.name]))
            entries.append(entry)
        return entries

    def _write(self, name: str, array: Any) -> str:
        path = self._path / f"{name}.npy"
        np.save(path, np.asarray(array), allow_pickle=False)
        return str(path)


def stored(tensor: Tensor, array: Any) -> Any:
    """Return an array as a tensor's elements are stored: bfloat16 as the upper bits of float32."""
    array = np.asarray(array)
    if tensor.dtype.name == "bfloat16" and array.dtype == np.float32:
        return (array.view(np.uint32) >> 16).astype(np.uint16)
    return array
