"""How often 95 % intervals of a score hold the true mean, by the number of families.

    python benchmarks/interval_coverage.py [NUMBER OF DRAWS]

Families are drawn from populations whose mean is known: speedups alone (log-normal), speedups
where three in ten or one in ten families fail and count b = 0.1, skewed speedups, and equal
families whose samples are timed with an error. Each draw is a run set; an honest interval holds the
mean in 95 % of them. Compared: the percentile bootstrap over families, Student's t, the studentised
bootstrap, and what the library gives (Hall's transformation held against Student's t, never
narrower than the timing). Prints one JSON object per population, number of families and method:
the share covered, and the median width over that of Student's t. The library itself gives no
interval below five families; its formula is shown there to say why.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from graphnet_datasets.scores import intervals as library

Floats = npt.NDArray[np.float64]

NUM_FAMILIES = (2, 4, 5, 8, 16, 32)
NUM_BOOTSTRAPS = 400
TIMING_ERROR = 0.02
"""Standard error of one log speedup: an interval of plus and minus 4 %."""

Population = Callable[[np.random.Generator, tuple[int, int]], Floats]


def speedups(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return log speedups of families without failures; their mean is 0.2."""
    return generator.normal(0.2, 0.4, shape)


def with_failures(share: float) -> Population:
    """Return a population of which this share fails at b = 0.1."""

    def draw(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
        fails = generator.random(shape) < share
        return np.where(fails, math.log(0.1), speedups(generator, shape))

    return draw


def skewed(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return log speedups of which few are large; their mean is 0.5."""
    return generator.exponential(0.5, shape)


def equal(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return what timing errors alone make of families of one true log speedup, 0.2."""
    return generator.normal(0.2, TIMING_ERROR, shape)


POPULATIONS: dict[str, tuple[Population, float]] = {
    "speedups": (speedups, 0.2),
    "3 in 10 fail": (with_failures(0.3), 0.3 * math.log(0.1) + 0.7 * 0.2),
    "1 in 10 fails": (with_failures(0.1), 0.1 * math.log(0.1) + 0.9 * 0.2),
    "skewed": (skewed, 0.5),
    "equal": (equal, 0.2),
}


def student(values: Floats, _: np.random.Generator) -> Floats:
    """Return Student's interval of the mean of each row."""
    count = values.shape[1]
    error = values.std(axis=1, ddof=1) / math.sqrt(count)
    width = library.t_quantile(count - 1) * error
    return np.stack([values.mean(axis=1) - width, values.mean(axis=1) + width])


def percentile(values: Floats, generator: np.random.Generator) -> Floats:
    """Return the percentile bootstrap's interval, families drawn with replacement."""
    means = _resampled(values, generator).mean(axis=2)
    return np.quantile(means, [0.025, 0.975], axis=1)


def studentised(values: Floats, generator: np.random.Generator) -> Floats:
    """Return the interval of the bootstrap of the studentised mean."""
    count = values.shape[1]
    mean = values.mean(axis=1)
    resampled = _resampled(values, generator)
    distances = resampled.mean(axis=2) - mean[:, None]
    errors = resampled.std(axis=2, ddof=1) / math.sqrt(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(errors > 1e-12, distances / errors, np.sign(distances) * 1e6)
    low, high = np.quantile(t, [0.025, 0.975], axis=1)
    error = values.std(axis=1, ddof=1) / math.sqrt(count)
    return np.stack([mean - high * error, mean - low * error])


def hall(values: Floats, _: np.random.Generator) -> Floats:
    """Return the library's interval, below its least number of families too."""
    timing = np.full(values.shape, TIMING_ERROR**2)
    before = library.MIN_FAMILIES
    library.MIN_FAMILIES = 2
    try:
        found = library.intervals(values, np.ones(values.shape[1]), timing)
    finally:
        library.MIN_FAMILIES = before
    if found is None:
        raise AssertionError("two families are enough here")
    return found[1]


def _resampled(values: Floats, generator: np.random.Generator) -> Floats:
    count = values.shape[1]
    return values[:, generator.integers(count, size=(NUM_BOOTSTRAPS, count))]


METHODS = {"percentile": percentile, "student": student, "studentised": studentised, "hall": hall}


def main() -> None:
    """Print the figures."""
    num_draws = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for population, (draw, truth) in POPULATIONS.items():
        for num_families in NUM_FAMILIES:
            generator = np.random.default_rng(num_families)
            values = draw(generator, (num_draws, num_families))
            least = np.median(np.diff(student(values, generator), axis=0))
            for method, interval in METHODS.items():
                low, high = interval(values, generator)
                figure = {
                    "population": population,
                    "families": num_families,
                    "method": method,
                    "covered": round(float(((low <= truth) & (truth <= high)).mean()), 3),
                    "width": round(float(np.median(high - low) / least), 2),
                }
                print(json.dumps(figure))


if __name__ == "__main__":
    main()
