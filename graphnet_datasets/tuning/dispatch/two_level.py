"""Input sensitivity: choose for each input one of a few configurations, in two levels.

Ding et al., "Autotuning Algorithmic Choice for Input Sensitivity", PLDI 2015.

Level 1. Training inputs are clustered by their normalised features (K-means); the best
configuration of the input nearest to each centre is a *landmark*, and all landmarks are measured on
all inputs.

Level 2. The clusters are thrown away: each input is labelled anew with the landmark that is fastest
on it and accurate enough. Classifiers from features to labels are trained with the cost of choosing
landmark j for an input of label i,

    C_ij = mean over inputs n of label i of T[n, j] - T[n, i],

and that one is kept which makes the sum of T[n, c(n)] + e least by cross-validation, where e is
what the features that it looks at take to compute. They are

- constant: one landmark for all;
- a decision tree for each subset of features;
- incremental: trees over the cheapest one, two, three … features, the first that is sure decides.

Ours: the cost is in seconds and not relative, since the sum of seconds is what the classifier is
chosen by. K = 16 (about 100 in the paper, as far as we know). An infinite time (failed, or not
accurate enough) counts as `PENALTY` times the input's slowest. Of more than `MAX_SUBSETS_OF`
features the subsets are those that a greedy forward selection visits. The constant is the landmark
with the least sum of times, where the paper tries the most frequent label too. Decisions in leaves
minimise the expected cost.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...errors import MissingExtraError, TuningError
from ..interfaces import Dispatcher, State
from .trees import DecisionTree, fit_tree

PENALTY = 10.0
MAX_SUBSETS_OF = 6
SURE = 0.9
_FOLDS = 5


class TwoLevelDispatcher(Dispatcher):
    """Landmarks by clusters, then the classifier that pays for its features.

    `landmarks` are the configurations kept, `chosen` names the classifier, `features` are those
    that it may look at, in order.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """

    def __init__(self, *, clusters: int = 16, max_depth: int = 6, seed: int = 0) -> None:
        if clusters < 1:
            raise TuningError(f"{clusters} clusters give no landmark; take at least 1.")
        self.clusters, self.max_depth, self.seed = clusters, max_depth, seed
        self.landmarks: list[str] = []
        self.chosen = ""
        self.features: list[int] = []
        self._trees: list[DecisionTree] = []

    def fit(
        self,
        inputs: np.ndarray,
        configs: Sequence[str],
        times: np.ndarray,
        feature_costs: np.ndarray,
    ) -> None:
        """Find landmarks, train all classifiers, and keep the one with the least expected time."""
        _check(inputs, configs, times, feature_costs)
        times = _penalised(times)
        kept = self._level_one(inputs, times)
        self.landmarks = [configs[index] for index in kept]
        times = times[:, kept]
        folds = np.random.default_rng(self.seed).permutation(len(inputs)) % min(_FOLDS, len(inputs))
        best = np.inf
        for name, features, is_incremental in self._classifiers(
            inputs, times, feature_costs, folds
        ):
            total = self._validated(inputs, times, feature_costs, folds, features, is_incremental)
            # a tie goes to the earlier, which is the simpler
            if total < best * (1 - 1e-9):
                best, self.chosen, self.features = total, name, list(features)
                self._trees = self._fit_trees(inputs, times, features, is_incremental)

    def choose(self, features: np.ndarray) -> str:
        """Return the configuration for one input.

        Raises:
            TuningError: it was not fitted.
        """
        return self.choose_with(lambda index: float(features[index]))

    def choose_with(self, feature: Callable[[int], float]) -> str:
        """Return the configuration for one input, computing only the features that it looks at.

        `feature` gives the value of a feature by its index; it is called once for each at most.

        Raises:
            TuningError: it was not fitted.
        """
        if not self._trees:
            raise TuningError("The dispatcher was not fitted, so that there is nothing to choose.")
        known: dict[int, float] = {}

        def look(index: int) -> float:
            if index not in known:
                known[index] = feature(index)
            return known[index]

        decision = 0
        for tree in self._trees:
            decision, is_sure = tree.decide(look)
            if is_sure:
                break
        return self.landmarks[decision]

    def _level_one(self, inputs: np.ndarray, times: np.ndarray) -> list[int]:
        """Return the configurations that are best on the inputs nearest to the centres."""
        spread = inputs.std(axis=0)
        points = (inputs - inputs.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        count = min(self.clusters, len(np.unique(points, axis=0)))
        means = _import_kmeans()(count, n_init=4, random_state=self.seed).fit(points)
        nearest = np.argmin(
            np.linalg.norm(points[None] - means.cluster_centers_[:, None], axis=2), axis=1
        )
        best = {int(np.argmin(times[index])) for index in nearest}
        best.add(int(np.argmin(times.sum(axis=0))))  # what one would take for all inputs
        return sorted(best)

    def _classifiers(
        self, inputs: np.ndarray, times: np.ndarray, costs: np.ndarray, folds: np.ndarray
    ) -> Iterator[tuple[str, tuple[int, ...], bool]]:
        count = inputs.shape[1]
        yield "constant", (), False
        if count <= MAX_SUBSETS_OF:
            for size in range(1, count + 1):
                for subset in itertools.combinations(range(count), size):
                    yield f"tree {list(subset)}", subset, False
        else:
            taken: tuple[int, ...] = ()
            while len(taken) < min(count, MAX_SUBSETS_OF):
                trials = [(*taken, index) for index in range(count) if index not in taken]
                totals = [
                    self._validated(inputs, times, costs, folds, each, False) for each in trials
                ]
                taken = trials[int(np.argmin(totals))]
                yield f"tree {list(taken)}", taken, False
        by_cost = tuple(int(index) for index in np.argsort(costs, kind="stable"))
        for size in range(2, min(count, MAX_SUBSETS_OF) + 1):
            yield f"incremental {list(by_cost[:size])}", by_cost[:size], True

    def _fit_trees(
        self, inputs: np.ndarray, times: np.ndarray, features: Sequence[int], is_incremental: bool
    ) -> list[DecisionTree]:
        sizes = range(1, len(features) + 1) if is_incremental else [len(features)]
        return [
            fit_tree(inputs, times, list(features[:size]), self.max_depth, self.seed, sure=SURE)
            for size in sizes
        ]

    def _validated(
        self,
        inputs: np.ndarray,
        times: np.ndarray,
        costs: np.ndarray,
        folds: np.ndarray,
        features: Sequence[int],
        is_incremental: bool,
    ) -> float:
        """Return the cross-validated sum of times and of what the features cost."""
        total = 0.0
        for fold in np.unique(folds):
            held = np.flatnonzero(folds == fold)
            rest = np.flatnonzero(folds != fold) if len(np.unique(folds)) > 1 else held
            trees = self._fit_trees(inputs[rest], times[rest], features, is_incremental)
            for index in held:
                decision, seen = 0, set()

                def look(feature: int, row: int = int(index), seen: set[int] = seen) -> float:
                    seen.add(feature)
                    return float(inputs[row, feature])

                for tree in trees:
                    decision, is_sure = tree.decide(look)
                    if is_sure:
                        break
                total += times[index, decision] + sum(costs[feature] for feature in seen)
        return float(total)

    def state(self) -> State:
        """Return what was fitted as JSON data, for `from_state`."""
        return {
            "landmarks": list(self.landmarks),
            "chosen": self.chosen,
            "features": list(self.features),
            "trees": [tree.state() for tree in self._trees],
        }

    @classmethod
    def from_state(cls, state: State) -> TwoLevelDispatcher:
        """Return a dispatcher that chooses as the one whose state it is; scikit-learn not needed.

        Raises:
            TuningError: the state is broken.
        """
        made = cls()
        try:
            made.landmarks = [str(each) for each in state["landmarks"]]
            made.chosen = str(state["chosen"])
            made.features = [int(each) for each in state["features"]]
            made._trees = [
                DecisionTree.from_state(each, len(made.landmarks)) for each in state["trees"]
            ]
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, TuningError):
                raise
            raise TuningError(
                f"The state of the dispatcher is broken: {type(error).__name__}: {error}. Fit it "
                "again."
            ) from error
        return made


def _penalised(times: np.ndarray) -> np.ndarray:
    """Return the times with `PENALTY` times the slowest in place of what failed."""
    slowest = np.max(np.where(np.isfinite(times), times, -np.inf), axis=1, keepdims=True)
    return np.where(np.isfinite(times), times, PENALTY * slowest)


def _check(
    inputs: np.ndarray, configs: Sequence[str], times: np.ndarray, feature_costs: np.ndarray
) -> None:
    shapes = np.shape(inputs), np.shape(times), np.shape(feature_costs)
    if len(shapes[0]) != 2 or not all(shapes[0]):
        raise TuningError(f"The inputs have the shape {shapes[0]}; they are [inputs, features].")
    if shapes[1] != (shapes[0][0], len(configs)):
        raise TuningError(
            f"The times have the shape {shapes[1]}; of {shapes[0][0]} inputs and {len(configs)} "
            f"configurations it has to be {(shapes[0][0], len(configs))}."
        )
    if shapes[2] != (shapes[0][1],):
        raise TuningError(
            f"There are {shapes[0][1]} features and costs of the shape {shapes[2]}; give one each."
        )
    if not np.isfinite(inputs).all() or not np.isfinite(feature_costs).all():
        raise TuningError("A feature or its cost is infinite or not a number; give finite ones.")
    if np.isnan(times).any() or not np.isfinite(times).any(axis=1).all():
        raise TuningError(
            "A time is not a number, or an input has no configuration that works. Write infinite "
            "times for failures, and leave such inputs out."
        )


def _import_kmeans() -> type:
    try:
        from sklearn.cluster import KMeans
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "tuning", "A two-level dispatcher") from error
    return KMeans
