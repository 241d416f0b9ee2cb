"""Tries of what ALT may measure next, against greedy, and how far any of it could reach.

    python benchmarks/tuning/alt_tries.py POOL --seeds 5 --half 0
    python benchmarks/tuning/alt_tries.py POOL --ceilings

A line per rule: measurements until within 5 % of the best over those of greedy, with the same score
predictor, a Gaussian process over features and knobs, and the same first batches. `--ceilings`
tells how many candidates are near the best, how many trials drawing at random takes, and at which
rank a score predictor that knows the times of all other candidates puts the first near one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from replaying import show
from scipy.spatial.distance import cdist
from trying import CAP, Choices, load, matern, standardised, trials_to_near

NOISE = 0.05
BATCH = 8
Rule = Callable[["Belief", int, np.random.Generator], list[int]]


class Belief:
    """The score predictor after some measurements: `mean`, `std`, over what is `left`."""

    def __init__(self, choices: Choices, distance: np.ndarray, measured: list[int]) -> None:
        self.distance, self.measured = distance, measured
        self.left = np.setdiff1d(np.arange(choices.count), measured)
        times = choices.log_times[measured]
        centre, self.scale = times.mean(), float(times.std()) or 1.0
        inner = matern(distance[np.ix_(measured, measured)]) + NOISE * np.eye(len(measured))
        cross = matern(distance[np.ix_(measured, self.left)])
        right = np.column_stack([cross, (times - centre) / self.scale])
        solved = np.linalg.solve(inner, right)
        self.mean = cross.T @ solved[:, -1] * self.scale + centre
        own = matern(distance[np.ix_(self.left, self.left)])
        self.covariance = (own - cross.T @ solved[:, :-1]) * self.scale**2

    def lowest(self, deviations: float, n: int) -> list[int]:
        """Return the candidates with the least mean less so many deviations."""
        std = np.sqrt(np.maximum(np.diag(self.covariance), 1e-12))
        order = np.argsort(self.mean - deviations * std)
        return [int(each) for each in self.left[order[:n]]]

    def believed(self, deviations: float, n: int) -> list[int]:
        """Return the lowest one by one, each as if those before were known."""
        covariance, chosen = self.covariance.copy(), []
        for _ in range(min(n, len(self.left))):
            std = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
            bound = self.mean - deviations * std
            bound[chosen] = np.inf
            index = int(np.argmin(bound))
            chosen.append(index)
            column = covariance[:, index].copy()
            covariance -= np.outer(column, column) / (column[index] + NOISE * self.scale**2)
        return [int(self.left[each]) for each in chosen]

    def apart(self, candidates: Sequence[int], n: int) -> list[int]:
        """Return those that are farthest from what was measured and from each other."""
        rest = np.array(candidates)
        distance = self.distance[np.ix_(rest, self.measured)].min(axis=1)
        chosen = []
        for _ in range(min(n, len(rest))):
            index = int(np.argmax(distance))
            chosen.append(int(rest[index]))
            distance = np.minimum(distance, self.distance[rest, rest[index]])
            distance[index] = -np.inf
        return chosen


def mixed(belief: Belief, deviations: float) -> list[int]:
    """Return half a batch by score, half by the bound."""
    best = belief.lowest(0, BATCH // 2)
    hopeful = [each for each in belief.lowest(deviations, BATCH) if each not in best]
    return best + hopeful[: BATCH - len(best)]


def with_chance(belief: Belief, rng: np.random.Generator, share: float) -> list[int]:
    """Return the batch of greedy, a share of it at random."""
    chosen = belief.lowest(0, BATCH)
    return list(
        dict.fromkeys(
            int(rng.choice(belief.left)) if rng.random() < share else each for each in chosen
        )
    )


RULES: dict[str, Rule] = {
    "greedy": lambda belief, *_: belief.lowest(0, BATCH),
    "bound 0.5": lambda belief, *_: belief.lowest(0.5, BATCH),
    "bound 1": lambda belief, *_: belief.lowest(1, BATCH),
    "bound 2": lambda belief, *_: belief.lowest(2, BATCH),
    "believed bound 1": lambda belief, *_: belief.believed(1, BATCH),
    "believed bound 2": lambda belief, *_: belief.believed(2, BATCH),
    "hopeful and apart": lambda belief, *_: belief.apart(belief.lowest(1, 2 * BATCH), BATCH),
    "half score, half bound 1": lambda belief, *_: mixed(belief, 1),
    "half score, half bound 2": lambda belief, *_: mixed(belief, 2),
    "bound 2 and score by turns": lambda belief, turn, _: belief.lowest(
        0 if turn % 2 == 0 else 2, BATCH
    ),
    "apart once, then greedy": lambda belief, turn, _: (
        belief.apart(list(belief.left), BATCH) if turn == 1 else belief.lowest(0, BATCH)
    ),
    "a fifth at random": lambda belief, _, rng: with_chance(belief, rng, 0.2),
    "one at a time, bound 1": lambda belief, *_: belief.lowest(1, 1),
    "two at a time, greedy": lambda belief, *_: belief.lowest(0, 2),
}


def distances(choices: Choices) -> np.ndarray:
    """Return distances of candidates by features and knobs, the median 1."""
    both = [standardised(choices.features), standardised(choices.knob_columns())]
    points = np.concatenate(both, axis=1)
    found = cdist(points, points)
    return found / np.median(found)


def trials(choices: Choices, distance: np.ndarray, rule: Rule, seed: int) -> int:
    """Return the measurements that a rule takes."""
    rng = choices.rng(seed)
    measured = [int(each) for each in rng.permutation(choices.count)[:BATCH]]
    turn = 0
    while (found := trials_to_near(choices, measured)) is None and len(measured) < CAP:
        turn += 1
        measured += rule(Belief(choices, distance, measured), turn, rng)
    return CAP + 1 if found is None else min(found, CAP + 1)


def ceilings(tasks: Sequence[Choices]) -> None:
    """Print what no rule can change."""
    ranks = []
    for each in tasks:
        times = each.log_times - each.log_times.mean()
        scale = times.std()
        inverse = np.linalg.inv(matern(distances(each)) + NOISE * np.eye(each.count))
        left_out = times / scale - inverse @ (times / scale) / np.diag(inverse)
        ranks.append(np.argsort(np.argsort(left_out))[each.is_near].min() + 1)
    near = np.array([each.is_near.sum() for each in tasks])
    counts = np.array([each.count for each in tasks])
    show(
        "alt-ceilings",
        tasks=len(tasks),
        candidates=float(np.median(counts)),
        near=float(np.median(near)),
        single_share=float((near == 1).mean()),
        random_trials=float(np.mean((counts + 1) / (near + 1))),
        shipped_near_share=float(np.mean([e.is_near[np.argmin(e.shown_ms)] for e in tasks])),
        rank_told_all_others=float(np.mean(ranks)),
        median_rank=float(np.median(ranks)),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Replay every rule."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--ceilings", action="store_true")
    own, rest = parser.parse_known_args(argv)
    from trying import arguments_of

    given = arguments_of(__doc__ or "", rest)
    tasks = load(given)
    if own.ceilings:
        ceilings(tasks)
        return
    known = [(each, distances(each)) for each in tasks]
    greedy = None
    for name, rule in RULES.items():
        found = np.array(
            [[trials(*each, rule, seed) for seed in range(given.seeds)] for each in known]
        )
        greedy = found.mean() if greedy is None else greedy
        show(
            "alt-tries",
            rule=name,
            tasks=len(tasks),
            seeds=given.seeds,
            trials_to_95=found.mean(),
            over_greedy=found.mean() / greedy,
            missed_share=(found > CAP).mean(),
        )


if __name__ == "__main__":
    main()
