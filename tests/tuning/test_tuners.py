"""Each tuner on the toy space: better than random where it should be, and clear on its limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from graphnet_datasets.errors import TuningError, UnknownTunerError
from graphnet_datasets.tuning import (
    Budget,
    Candidate,
    Origin,
    Tuner,
    list_tuners,
    make_allocator,
    make_tuner,
    register_tuner,
    tune,
)
from graphnet_datasets.tuning.knobs import knob_matrix
from graphnet_datasets.tuning.models.predictor import Predictor
from graphnet_datasets.tuning.tuners.gptune import believed_best

from .toy import (
    TASKS,
    SmallSpace,
    ToyMeasurer,
    ToySpace,
    best_known_ms,
    choice_of,
    latency_ms,
    make_task,
)

QUICK: Mapping[str, Mapping[str, Any]] = {
    "random": {},
    "ansor": {"population": 24, "generations": 3, "rounds": 12},
    "gptune": {"pool_size": 64, "iterations": 8, "initial_trials": 8},
    "alt": {"pool_size": 64, "trees": 12},
}
NEEDS = {"ansor": "xgboost", "gptune": "gpytorch", "alt": "sklearn"}


def quality(
    name: str, seed: int, trials: int = 24, options: Mapping[str, Any] | None = None
) -> float:
    """The geometric mean over tasks of the best that is possible over what was found."""
    space = ToySpace()
    tasks = TASKS[:2]
    result = tune(
        tasks,
        make_tuner(name, space, seed=seed, options={**QUICK[name], **(options or {})}),
        ToyMeasurer(space),
        make_allocator("round-robin", tasks, options={"slot_trials": 8}),
        Budget(trials * len(tasks)),
    )
    ratios = [
        best_known_ms(task) / latency_ms(task, choice_of(result.best[task.task_id].candidate))
        for task in tasks
    ]
    return float(np.exp(np.mean(np.log(ratios))))


@pytest.mark.parametrize(("name", "seeds"), [("ansor", 3), ("gptune", 2)])
def test_a_model_beats_random_at_equal_trials(name: str, seeds: int) -> None:
    pytest.importorskip(NEEDS[name])
    random = np.median([quality("random", seed) for seed in range(9)])
    informed = np.median([quality(name, seed) for seed in range(seeds)])
    assert informed > 1.1 * random


def test_alt_beats_random_at_equal_trials() -> None:
    pytest.importorskip("sklearn")
    random = np.median([quality("random", seed, 40) for seed in range(9)])
    assert np.median([quality("alt", seed, 40) for seed in range(2)]) > 1.05 * random


@pytest.mark.parametrize("name", list(QUICK))
def test_proposals_are_new_and_the_state_is_json(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    space = SmallSpace()
    measurer = ToyMeasurer(space)
    tuner = make_tuner(name, space, seed=5, options=QUICK[name])
    seen: set[str] = set()
    rows = []
    for _ in range(3):
        batch = tuner.propose(TASKS[0], 5)
        hashes = {each.trace_hash for each in batch}
        assert 0 < len(hashes) == len(batch) <= 5  # fewer where a hypercube ends
        assert not hashes & seen
        seen |= hashes
        measured = list(measurer.measure(batch))
        tuner.observe(measured)
        rows += measured
    other = make_tuner(name, space, seed=77, options=QUICK[name])
    other.restore(json.loads(json.dumps(tuner.state())), rows)
    assert [each.trace_hash for each in other.propose(TASKS[0], 5)] == [
        each.trace_hash for each in tuner.propose(TASKS[0], 5)
    ]


@pytest.mark.parametrize("name", ["random", "gptune", "alt", "bolt"])
def test_a_finite_space_is_proposed_whole_and_then_nothing(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    space = SmallSpace()
    count = len(space.enumerate(TASKS[0]))
    # without rows: every candidate once, whatever is known of it
    tuner = make_tuner(name, space, options={"pool_size": 999} if name == "gptune" else None)
    proposed = [each for _ in range(4) for each in tuner.propose(TASKS[0], count)]
    features = space.features_of(proposed)
    lacking = sum(each is None for each in space.features_of(space.enumerate(TASKS[0])))
    assert len(proposed) == (count - lacking if name == "alt" else count)
    assert len({each.trace_hash for each in proposed}) == len(proposed) == len(features)


def test_alt_turns_from_uncertainty_to_score_and_back() -> None:
    pytest.importorskip("sklearn")
    space = ToySpace()
    tuner = make_tuner("alt", space, options=QUICK["alt"])
    measurer = ToyMeasurer(space)
    phases = []
    for _ in range(12):
        phases.append(tuner.phase(TASKS[0]))  # type: ignore[attr-defined]
        tuner.observe(list(measurer.measure(tuner.propose(TASKS[0], 8))))
    assert phases[0] == "uncertainty"
    assert {"uncertainty", "score"} == set(phases)
    greedy = make_tuner("alt", space, options={**QUICK["alt"], "phases": "score"})
    assert greedy.phase(TASKS[0]) == "score"  # type: ignore[attr-defined]


def test_believed_points_are_not_all_in_one_place() -> None:
    mean = np.zeros(4)
    covariance = np.eye(4)
    covariance[0, 1] = covariance[1, 0] = 0.999  # the first two are nearly one point
    covariance[0, 0] = covariance[1, 1] = 1.2
    assert believed_best(mean, covariance, 0.0, 3) == [0, 2, 3]


def test_bolt_spreads_over_the_template_first() -> None:
    space = SmallSpace()
    tuner = make_tuner("bolt", space)
    first = tuner.propose(TASKS[0], 8)
    points, _ = knob_matrix([space.knobs(each) for each in space.enumerate(TASKS[0])])
    order = {each.trace_hash: index for index, each in enumerate(space.enumerate(TASKS[0]))}
    chosen = [order[each.trace_hash] for each in first]
    assert pdist(points[chosen]).min() > 1.5 * pdist(points[:8]).min()
    assert all(each.origin == Origin.TEMPLATE for each in first)


def test_bolt_wants_a_template() -> None:
    with pytest.raises(TuningError, match="cannot be enumerated"):
        make_tuner("bolt", ToySpace()).propose(TASKS[0], 4)


@pytest.fixture(scope="module")
def predictor_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch")
    tasks = [make_task(32, 64, 64), make_task(64, 64, 256), make_task(128, 128, 64)]
    space = ToySpace(tasks)
    measurer = ToyMeasurer(space)
    rows = [row for task in tasks for row in measurer.measure(space.sample(task, 80, 1))]
    predictor = Predictor(space, tasks, epochs=30, width=32)
    predictor.fit(rows)
    path = tmp_path_factory.mktemp("predictor") / "predictor.npz"
    predictor.save(path)
    return path


def test_one_shot_picks_a_fast_candidate_of_a_task_it_never_saw(predictor_file: Path) -> None:
    task = make_task(96, 128, 128)
    space = ToySpace([task])
    drawn = space.sample(task, 300, 0)
    times = [latency_ms(task, choice_of(each)) for each in drawn]
    picked = []
    for seed in range(3):
        tuner = make_tuner(
            "oneshot", space, seed=seed, options={"predictor": predictor_file, "pool_size": 300}
        )
        (candidate,) = tuner.propose(task, 8)
        assert tuner.propose(task, 8) == []
        assert candidate.origin == Origin.PREDICT
        assert candidate.predicted is not None
        picked.append(latency_ms(task, choice_of(candidate)))
    assert np.median(picked) < np.quantile(times, 0.1)


def test_one_shot_may_pick_several(predictor_file: Path) -> None:
    task = make_task(96, 128, 128)
    space = ToySpace([task])
    options = {"predictor": str(predictor_file), "picks": 5, "pool_size": 64}
    tuner = make_tuner("oneshot", space, options=options)
    picks = tuner.propose(task, 3) + tuner.propose(task, 3)
    assert len({each.trace_hash for each in picks}) == 5


def test_a_predictor_that_does_not_fit_is_refused(predictor_file: Path, tmp_path: Path) -> None:
    with pytest.raises(TuningError, match="needs a trained predictor"):
        make_tuner("oneshot", ToySpace())
    broken = tmp_path / "broken.npz"
    broken.write_bytes(predictor_file.read_bytes()[:200])
    with pytest.raises(TuningError, match="cannot be read as a trained"):
        make_tuner("oneshot", ToySpace(), options={"predictor": broken})
    space = ToySpace()
    space.feature_set = "other-2"
    with pytest.raises(TuningError, match=r"features `toy-1`, but the space computes `other-2`"):
        make_tuner("oneshot", space, options={"predictor": predictor_file})


class FixedTuner(Tuner):
    """Always the first candidates of the space: a tuner of one's own."""

    def __init__(self, space: SmallSpace, *, seed: int = 0) -> None:
        self.left = space.enumerate(TASKS[0])[seed:]

    def propose(self, task: Any, n: int) -> list[Candidate]:  # noqa: ARG002
        chosen, self.left = self.left[:n], self.left[n:]
        return chosen

    def observe(self, measurements: Any) -> None:
        pass

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Any, measurements: Any) -> None:
        pass


def test_a_tuner_of_ones_own_is_found_by_its_name_or_reference() -> None:
    register_tuner("toy-fixed", FixedTuner)
    try:
        assert "toy-fixed" in list_tuners()
        made = make_tuner("toy-fixed", SmallSpace(), seed=2)
        assert [each.trace_json for each in made.propose(TASKS[0], 1)] == [
            SmallSpace().enumerate(TASKS[0])[2].trace_json
        ]
        with pytest.raises(UnknownTunerError, match="is already taken"):
            register_tuner("toy-fixed", FixedTuner)
    finally:
        from graphnet_datasets.tuning import registry

        del registry._TUNERS.registered["toy-fixed"]
    by_reference = make_tuner(f"{__name__}:FixedTuner", SmallSpace())
    assert type(by_reference).__name__ == "FixedTuner"
    by_path = make_tuner(f"{__file__}:FixedTuner", SmallSpace())
    assert type(by_path).__name__ == "FixedTuner"


def test_an_installed_package_offers_a_tuner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "offering-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[graphnet_datasets.tuners]\noffered = {__name__}:FixedTuner\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "offered" in list_tuners()
    assert isinstance(make_tuner("offered", SmallSpace()), FixedTuner)


def as_text(space: Any, *, seed: int) -> str:
    return f"{space} {seed}"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("anzor", None, "Did you mean `ansor`?"),
        ("nowhere:Tuner", None, "The tuner `nowhere:Tuner` cannot be imported"),
        ("builtins:sorted", None, "cannot be created with the options"),
        (
            f"{__name__}:as_text",
            None,
            "returned `str`. Return an instance of `graphnet_datasets.tuning.Tuner`",
        ),
        ("random", {"populaton": 3}, "cannot be created with the options {'populaton': 3}"),
        ("json:JSONEncoder", None, "cannot be created with the options"),
        ("alt", {"phases": "pong"}, "must be `ping-pong`, `score`, `uncertainty` or `bound`"),
        ("ansor", {"population": 1}, "`population` must be at least 2"),
        ("gptune", {"initial_trials": 0}, "`pool_size` must be at least 1"),
    ],
)
def test_objects_that_are_no_tuner_are_refused(name: str, options: Any, message: str) -> None:
    with pytest.raises(TuningError) as error:
        make_tuner(name, ToySpace(), options=options)
    assert message in str(error.value)
