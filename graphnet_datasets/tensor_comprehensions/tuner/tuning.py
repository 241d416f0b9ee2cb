"""The genetic search over options."""

from __future__ import annotations

import dataclasses
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...atomic import append_json
from ...decoding import read_journal
from ...errors import TensorComprehensionError
from ..language.instance import Instance
from ..options import Options
from .config import Candidate, Progress, TunerConfig, TuningResult
from .evaluation import Evaluator
from .genetic import first_generation, next_generation
from .space import space_of, triton_space_of
from .triton_evaluation import TritonEvaluator


def autotune(
    instance: Instance,
    inputs: Sequence[Any],
    *,
    start: Sequence[Options] = (),
    config: TunerConfig | None = None,
    outputs: dict[str, Any] | None = None,
    device: Any = None,
    log: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> TuningResult:
    """Search for the fastest options of an instance on this machine.

    Candidates are compiled and run in separate processes, so a candidate that crashes or hangs does
    not affect the search. Outputs are compared with the interpreter's float64 results before a
    candidate is timed.

    Args:
        inputs: arrays to check and time candidates with.
        start: options to try first; the default options are always tried as well, and for several
            statements the other modes of outer fusion.
        outputs: initial contents of accumulated outputs.
        device: a `torch.device` of type `cuda` to tune the options of Triton on; None for the CPU.
        log: path of a JSON Lines file to which candidates are appended. Candidates in the file are
            not timed again, so an interrupted search resumes.
        progress: called after each candidate.

    Raises:
        TensorComprehensionError: no candidate ran successfully.
    """
    config = config or TunerConfig()
    generator = random.Random(config.seed)  # noqa: S311 (a search, no secret)
    default = Options() if device is None else Options().with_triton()
    space = space_of(instance) if device is None else triton_space_of(instance)
    if device is not None:
        start = [options.with_triton() for options in start]
    base = start[0] if start else default
    tried: list[Candidate] = []
    start_s = time.perf_counter()
    logged = {} if log is None else _read_log(Path(log))
    if device is None:
        evaluator = Evaluator(instance, inputs, config, outputs)
    else:
        evaluator = TritonEvaluator(instance, inputs, config, outputs, device)
    with evaluator:
        for candidate in logged.values():
            evaluator.remember(candidate)
        default = default.replace(threads=base.threads)
        modes = ("min", "max") if len(instance.statements) > 1 and device is None else ()
        fusions = [default.replace(outer_fusion=mode) for mode in modes]
        population = first_generation(space, [base, *start, default, *fusions], config, generator)
        for number in range(config.generations):
            generation: list[Candidate] = []
            for candidate in _batches(population, evaluator, tried, config, start_s):
                generation.append(candidate)
                tried.append(candidate)
                if log is not None and candidate.source_hash not in logged:
                    _append_log(Path(log), candidate)
                if progress is not None:
                    progress(_progress(number, tried, start_s))
            if _is_over(config, start_s) or not generation:
                break
            population = next_generation(space, generation, config, generator)
        finalists = _run_off(evaluator, tried, config)
    result = TuningResult(tuple(tried), time.perf_counter() - start_s, finalists)
    if math.isinf(result.best.median_ms):
        raise TensorComprehensionError(
            f"All {len(tried)} candidates for `{instance.name}` failed. Fix the first error: "
            f"{tried[0].error}"
        )
    return result


def _run_off(
    evaluator: Evaluator, tried: Sequence[Candidate], config: TunerConfig
) -> tuple[Candidate, ...]:
    """Time the best candidates and the first again, in turn, and return them with the new times."""
    timed = [candidate for candidate in tried if candidate.times_ms]
    ranked = sorted(timed, key=lambda candidate: candidate.median_ms)
    by_code: dict[str, Candidate] = {}
    for candidate in ranked:
        by_code.setdefault(candidate.source_hash, candidate)
    best = list(by_code.values())[: config.num_finalists]
    if not best:
        return ()
    finalists = {candidate.source_hash: candidate for candidate in (*best, *timed[:1])}
    times: dict[str, tuple[float, ...]] = {}
    for _ in range(2):
        for key, candidate in finalists.items():
            times[key] = (*times.get(key, ()), *evaluator.time_again(candidate).times_ms)
    return tuple(
        dataclasses.replace(candidate, times_ms=times[key])
        for key, candidate in finalists.items()
        if times[key]
    )


def _batches(
    population: list[Options],
    evaluator: Evaluator,
    tried: list[Candidate],
    config: TunerConfig,
    start_s: float,
) -> Iterator[Candidate]:
    """Evaluate a generation, in small batches if there is a time budget."""
    size = len(population) if config.budget_s is None else 4
    for first in range(0, len(population), size):
        if tried and _is_over(config, start_s):
            return
        best = min((candidate.median_ms for candidate in tried), default=math.inf)
        yield from evaluator.evaluate(population[first : first + size], best)


def _is_over(config: TunerConfig, start_s: float) -> bool:
    return config.budget_s is not None and time.perf_counter() - start_s > config.budget_s


def _progress(generation: int, tried: list[Candidate], start_s: float) -> Progress:
    return Progress(
        generation,
        len(tried),
        sum(1 for candidate in tried if not candidate.times_ms),
        min(candidate.median_ms for candidate in tried),
        time.perf_counter() - start_s,
    )


def _append_log(path: Path, candidate: Candidate) -> None:
    entry = {**dataclasses.asdict(candidate), "options": candidate.options.to_dict()}
    append_json(path, entry)


def _read_log(path: Path) -> dict[str, Candidate]:
    """Return the candidates of a log by source hash."""
    candidates: dict[str, Candidate] = {}
    for entry in read_journal(path):
        try:
            candidate = Candidate(
                Options.from_dict(entry["options"]),
                tuple(float(time_ms) for time_ms in entry["times_ms"]),
                str(entry["error"]),
                str(entry["source_hash"]),
                float(entry["at_s"]),
            )
        except (ValueError, KeyError, TypeError):
            continue
        candidates[candidate.source_hash] = candidate
    return candidates
