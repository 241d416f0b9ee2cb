"""Generations of the genetic search: selection, crossover and mutation."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..options import Options
from .config import Candidate, TunerConfig
from .space import Space

_RETRIES = 50


def first_generation(
    space: Space, initial: Sequence[Options], config: TunerConfig, generator: random.Random
) -> list[Options]:
    """Return the first generation: the initial options, then random options."""
    population = list(dict.fromkeys(initial))[: config.population]
    start = population[0] if population else Options()
    return _filled(population, config.population, lambda: space.draw(generator, start))


def next_generation(
    space: Space, tried: Sequence[Candidate], config: TunerConfig, generator: random.Random
) -> list[Options]:
    """Return the generation that follows the candidates of the last one.

    Elites are kept. Parents are drawn by fitness, which is the inverse of their time. A child takes
    each option from one of three parents, or copies one parent, and may mutate.
    """
    valid = sorted(
        (candidate for candidate in tried if candidate.times_ms),
        key=lambda candidate: candidate.median_ms,
    )
    if len(valid) < config.min_valid:
        best = [candidate.options for candidate in valid[:1]]
        start = best[0] if best else tried[0].options
        return _filled(best, config.population, lambda: space.draw(generator, start))
    fitness = [1.0 / max(candidate.median_ms, 1e-9) for candidate in valid]

    def child() -> Options:
        parents = [parent.options for parent in generator.choices(valid, fitness, k=3)]
        mixed = parents[0]
        if generator.random() < config.crossover:
            mixed = space.cross(generator, parents)
        return space.mutate(generator, mixed, config.mutation)

    return _filled(
        [candidate.options for candidate in valid[: config.elites]], config.population, child
    )


def _filled(population: list[Options], size: int, draw) -> list[Options]:
    """Extend a population to `size`; duplicates are retried a limited number of times."""
    population = list(population)
    retries = _RETRIES
    while len(population) < size:
        options = draw()
        if options in population and retries:
            retries -= 1
            continue
        population.append(options)
    return population
