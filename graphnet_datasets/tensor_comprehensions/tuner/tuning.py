"""The search itself."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...decoding import load_json, read_text
from ...errors import TensorComprehensionError
from ..language.instance import Instance
from ..options import Options
from .config import Candidate, Progress, TunerConfig, TuningResult
from .evaluation import Evaluator
from .genetic import first_generation, next_generation
from .space import space_of


def autotune(
    instance: Instance,
    inputs: Sequence[Any],
    *,
    start: Sequence[Options] = (),
    config: TunerConfig | None = None,
    outputs: dict[str, Any] | None = None,
    log: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> TuningResult:
    """Search for the fastest options of an instance on this machine.

    Every candidate is compiled and run in processes of its own, so that one that crashes or hangs
    costs itself only, and its outputs are compared with the interpreter's in float64 before it is
    timed.

    Args:
        inputs: arrays to check and time on.
        start: options to begin with; the defaults are always tried first.
        outputs: the contents of outputs that are accumulated into.
        log: a file of JSON lines to which each candidate is appended. Candidates that it already
            holds are not timed again: an interrupted search goes on where it was.
        progress: called after each candidate.

    Raises:
        TensorComprehensionError: no candidate ran.
    """
    config = config or TunerConfig()
    generator = random.Random(config.seed)  # noqa: S311 (a search, no secret)
    space = space_of(instance)
    base = start[0] if start else Options()
    tried: list[Candidate] = []
    began = time.perf_counter()
    known = {} if log is None else _read_log(Path(log))
    with Evaluator(instance, inputs, config, outputs) as evaluator:
        for each in known.values():
            evaluator.remember(each)
        population = first_generation(
            space, [base, *start, Options(threads=base.threads)], config, generator
        )
        for number in range(config.generations):
            generation: list[Candidate] = []
            for candidate in _batches(population, evaluator, tried, config, began):
                generation.append(candidate)
                tried.append(candidate)
                if log is not None and candidate.source_hash not in known:
                    _append_log(Path(log), candidate)
                if progress is not None:
                    progress(_progress(number, tried, began))
            if _is_over(config, began) or not generation:
                break
            population = next_generation(space, generation, config, generator)
        finalists = _run_off(evaluator, tried, config)
    result = TuningResult(tuple(tried), time.perf_counter() - began, finalists)
    if math.isinf(result.best.median_ms):
        raise TensorComprehensionError(
            f"None of {len(tried)} candidates for `{instance.name}` ran. The first failed with: "
            f"{tried[0].error}"
        )
    return result


def _run_off(
    evaluator: Evaluator, tried: Sequence[Candidate], config: TunerConfig
) -> tuple[Candidate, ...]:
    """Return the best few and the first with the times of two more runs of each, in turn."""
    ran = [each for each in tried if each.times_ms]
    ranked = sorted(ran, key=lambda each: each.median_ms)
    by_code: dict[str, Candidate] = {}
    for each in ranked:
        by_code.setdefault(each.source_hash, each)
    best = list(by_code.values())[: config.num_finalists]
    if not best:
        return ()
    finalists = {each.source_hash: each for each in (*best, *ran[:1])}
    times: dict[str, tuple[float, ...]] = {}
    for _ in range(2):
        for key, each in finalists.items():
            times[key] = (*times.get(key, ()), *evaluator.again(each).times_ms)
    return tuple(
        dataclasses.replace(each, times_ms=times[key])
        for key, each in finalists.items()
        if times[key]
    )


def _batches(
    population: list[Options],
    evaluator: Evaluator,
    tried: list[Candidate],
    config: TunerConfig,
    began: float,
) -> Iterator[Candidate]:
    """Evaluate a generation; with a budget a few at a time, so that it is not overrun by much."""
    size = len(population) if config.budget_s is None else 4
    for first in range(0, len(population), size):
        if tried and _is_over(config, began):
            return
        best = min((each.median_ms for each in tried), default=math.inf)
        yield from evaluator.evaluate(population[first : first + size], best)


def _is_over(config: TunerConfig, began: float) -> bool:
    return config.budget_s is not None and time.perf_counter() - began > config.budget_s


def _progress(generation: int, tried: list[Candidate], began: float) -> Progress:
    return Progress(
        generation,
        len(tried),
        sum(1 for each in tried if not each.times_ms),
        min(each.median_ms for each in tried),
        time.perf_counter() - began,
    )


def _append_log(path: Path, candidate: Candidate) -> None:
    entry = {**dataclasses.asdict(candidate), "options": candidate.options.to_dict()}
    with path.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def _read_log(path: Path) -> dict[str, Candidate]:
    """Return the candidates of a log by their code; a last line that was cut off is left out."""
    known: dict[str, Candidate] = {}
    if not path.exists():
        return known
    for line in read_text(path).splitlines():
        try:
            entry = load_json(line, path)
            candidate = Candidate(
                Options.from_dict(entry["options"]),
                tuple(float(each) for each in entry["times_ms"]),
                str(entry["error"]),
                str(entry["source_hash"]),
                float(entry["at_s"]),
            )
        except (ValueError, KeyError, TypeError):
            continue
        known[candidate.source_hash] = candidate
    return known
