"""Two-level choice of one of several configurations for each input.

Ding et al., "Autotuning Algorithmic Choice for Input Sensitivity", PLDI 2015.

Level 1. Training inputs are clustered by their normalised features (K-means). The best
configuration of the input nearest to each centre is a *landmark*, and all landmarks are measured on
all inputs.

Level 2. The clusters are discarded. Each input is labelled with its fastest sufficiently accurate
landmark. Classifiers from features to labels are trained with the cost of choosing landmark j for
an input of label i,

    C_ij = mean over inputs n of label i of T[n, j] - T[n, i],

and the classifier with the smallest cross-validated sum of T[n, c(n)] + e is selected, where e is
the time to compute the features that it uses. The classifiers are

- constant: one landmark for all inputs;
- a decision tree for each subset of features;
- incremental: trees over the cheapest one, two, three … features; the first sure tree decides.

Differences from the paper: costs are in seconds and not relative, since classifiers are selected by
a sum of seconds. K = 16 (about 100 in the paper, to our knowledge). An infinite time (a failure, or
insufficient accuracy) counts as `PENALTY` times the input's slowest. With more than
`MAX_SUBSETS_OF` features, only subsets visited by a greedy forward selection are tried. The
constant is the landmark with the smallest sum of times; the paper also tries the most frequent
label. Leaves minimise the expected cost.
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
    """A dispatcher that finds landmarks by clustering, then selects a classifier by total time.

    `landmarks` are the selected configurations, `chosen` is the name of the classifier, and
    `features` are the features that it may use, in order.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """

    def __init__(self, *, clusters: int = 16, max_depth: int = 6, seed: int = 0) -> None:
        if clusters < 1:
            raise TuningError(f"`clusters` must be at least 1, got {clusters}.")
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
        """Find landmarks, train all classifiers, and select that of the least expected time."""
        _check(inputs, configs, times, feature_costs)
        times = _penalised(times)
        landmark_indices = self._level_one(inputs, times)
        self.landmarks = [configs[index] for index in landmark_indices]
        times = times[:, landmark_indices]
        folds = np.random.default_rng(self.seed).permutation(len(inputs)) % min(_FOLDS, len(inputs))
        best = np.inf
        for name, features, is_incremental in self._classifiers(
            inputs, times, feature_costs, folds
        ):
            total = self._validated(inputs, times, feature_costs, folds, features, is_incremental)
            # on a tie, prefer the earlier and simpler classifier
            if total < best * (1 - 1e-9):
                best, self.chosen, self.features = total, name, list(features)
                self._trees = self._fit_trees(inputs, times, features, is_incremental)

    def choose(self, features: np.ndarray) -> str:
        """Return the configuration for one input.

        Raises:
            TuningError: the dispatcher has not been fitted.
        """
        return self.choose_with(lambda index: float(features[index]))

    def choose_with(self, feature: Callable[[int], float]) -> str:
        """Return the configuration for one input, computing only the features that are used.

        `feature` returns a feature by index; it is called at most once per feature.

        Raises:
            TuningError: the dispatcher has not been fitted.
        """
        if not self._trees:
            raise TuningError("The dispatcher has not been fitted. Call `fit` first.")
        values: dict[int, float] = {}

        def look(index: int) -> float:
            if index not in values:
                values[index] = feature(index)
            return values[index]

        decision = 0
        for tree in self._trees:
            decision, is_sure = tree.decide(look)
            if is_sure:
                break
        return self.landmarks[decision]

    def _level_one(self, inputs: np.ndarray, times: np.ndarray) -> list[int]:
        """Return the best configurations of the inputs nearest to the cluster centres."""
        spread = inputs.std(axis=0)
        points = (inputs - inputs.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        count = min(self.clusters, len(np.unique(points, axis=0)))
        means = _import_kmeans()(count, n_init=4, random_state=self.seed).fit(points)
        nearest = np.argmin(
            np.linalg.norm(points[None] - means.cluster_centers_[:, None], axis=2), axis=1
        )
        best = {int(np.argmin(times[index])) for index in nearest}
        best.add(int(np.argmin(times.sum(axis=0))))  # the best constant choice
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
            selected: tuple[int, ...] = ()
            while len(selected) < min(count, MAX_SUBSETS_OF):
                trials = [(*selected, index) for index in range(count) if index not in selected]
                totals = [
                    self._validated(inputs, times, costs, folds, trial, False) for trial in trials
                ]
                selected = trials[int(np.argmin(totals))]
                yield f"tree {list(selected)}", selected, False
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
        """Return the cross-validated sum of times and feature costs."""
        total = 0.0
        for fold in np.unique(folds):
            validation = np.flatnonzero(folds == fold)
            training = np.flatnonzero(folds != fold) if len(np.unique(folds)) > 1 else validation
            trees = self._fit_trees(inputs[training], times[training], features, is_incremental)
            for index in validation:
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
        """Return the fitted dispatcher as JSON data for `from_state`."""
        return {
            "landmarks": list(self.landmarks),
            "chosen": self.chosen,
            "features": list(self.features),
            "trees": [tree.state() for tree in self._trees],
        }

    @classmethod
    def from_state(cls, state: State) -> TwoLevelDispatcher:
        """Return a dispatcher restored from a state, without scikit-learn.

        Raises:
            TuningError: the state is invalid.
        """
        dispatcher = cls()
        try:
            dispatcher.landmarks = [str(landmark) for landmark in state["landmarks"]]
            dispatcher.chosen = str(state["chosen"])
            dispatcher.features = [int(feature) for feature in state["features"]]
            dispatcher._trees = [
                DecisionTree.from_state(tree_state, len(dispatcher.landmarks))
                for tree_state in state["trees"]
            ]
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, TuningError):
                raise
            raise TuningError(
                f"The state of the dispatcher is invalid: {type(error).__name__}: {error}. Fit it "
                "again."
            ) from error
        return dispatcher


def _penalised(times: np.ndarray) -> np.ndarray:
    """Return the times with each failure replaced by `PENALTY` times the input's slowest."""
    slowest = np.max(np.where(np.isfinite(times), times, -np.inf), axis=1, keepdims=True)
    return np.where(np.isfinite(times), times, PENALTY * slowest)


def _check(
    inputs: np.ndarray, configs: Sequence[str], times: np.ndarray, feature_costs: np.ndarray
) -> None:
    shapes = np.shape(inputs), np.shape(times), np.shape(feature_costs)
    if len(shapes[0]) != 2 or not all(shapes[0]):
        raise TuningError(f"`inputs` must have shape [inputs, features], got {shapes[0]}.")
    if shapes[1] != (shapes[0][0], len(configs)):
        raise TuningError(
            f"`times` has shape {shapes[1]}; for {shapes[0][0]} inputs and {len(configs)} "
            f"configurations it must have shape {(shapes[0][0], len(configs))}."
        )
    if shapes[2] != (shapes[0][1],):
        raise TuningError(
            f"`feature_costs` must have a cost for each of {shapes[0][1]} features, got shape "
            f"{shapes[2]}."
        )
    if not np.isfinite(inputs).all() or not np.isfinite(feature_costs).all():
        raise TuningError("`inputs` and `feature_costs` must be finite. Remove NaN and inf.")
    if np.isnan(times).any() or not np.isfinite(times).any(axis=1).all():
        raise TuningError(
            "`times` has a NaN, or an input for which no configuration works. Use infinite times "
            "for failures, and leave out such inputs."
        )


def _import_kmeans() -> type:
    try:
        from sklearn.cluster import KMeans
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "tuning", "A two-level dispatcher") from error
    return KMeans
