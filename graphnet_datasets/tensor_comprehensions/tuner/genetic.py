"""Generations: who stays, who has children, and what they inherit."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..options import Options
from .config import Candidate, TunerConfig
from .space import Space

_RETRIES = 50


def first_generation(
    space: Space, known: Sequence[Options], config: TunerConfig, generator: random.Random
) -> list[Options]:
    """Return options to begin with: those known, then random ones."""
    found = list(dict.fromkeys(known))[: config.population]
    start = found[0] if found else Options()
    return _filled(found, config.population, lambda: space.draw(generator, start))


def next_generation(
    space: Space, tried: Sequence[Candidate], config: TunerConfig, generator: random.Random
) -> list[Options]:
    """Return the next generation of the last one's candidates.

    The elites stay as they are. Parents are drawn by fitness, the inverse of their time; a child
    takes each option from one of three, or is a copy of one, and may mutate.
    """
    valid = sorted((each for each in tried if each.times_ms), key=lambda each: each.median_ms)
    if len(valid) < config.min_valid:
        kept = [each.options for each in valid[:1]]
        start = kept[0] if kept else tried[0].options
        return _filled(kept, config.population, lambda: space.draw(generator, start))
    fitness = [1.0 / max(each.median_ms, 1e-9) for each in valid]

    def child() -> Options:
        parents = [each.options for each in generator.choices(valid, fitness, k=3)]
        mixed = parents[0]
        if generator.random() < config.crossover:
            mixed = space.cross(generator, parents)
        return space.mutate(generator, mixed, config.mutation)

    return _filled([each.options for each in valid[: config.elites]], config.population, child)


def _filled(found: list[Options], size: int, make) -> list[Options]:
    """Return `found` with others added until there are `size`; twins are tried a few times only."""
    found = list(found)
    retries = _RETRIES
    while len(found) < size:
        each = make()
        if each in found and retries:
            retries -= 1
            continue
        found.append(each)
    return found
