"""Translation of many samples, which continues after a stop."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from graphnet_datasets import Sample
from graphnet_datasets.benchmark.judging.translating import Translation, translate_rows
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.storage.parts import PartReader
from graphnet_datasets.storage.selection import require
from graphnet_datasets.storage.staging import Staging

X = Input("input", Value("float32", (2, 3)))
NAMES = ("relu", "exp", "randn_like", "tanh")
SAMPLES = [
    Sample(f"test/{name}", "torch", "cv", (X,), (Op(f"torch.{name}", (Ref(0),)),), Ref(1))
    for name in NAMES
]


def translate(staging: Staging, is_checked: bool, stops_at: int = 99) -> list[Translation]:
    def stop(done: int, total: int) -> None:
        assert total == len(SAMPLES)
        if done == stops_at:
            raise KeyboardInterrupt

    chosen = require(SAMPLES)
    results = translate_rows(chosen, staging, is_checked=is_checked, jobs=1, on_progress=stop)
    return sorted(results, key=lambda translation: translation.sample_id)


@pytest.mark.torch
@pytest.mark.parametrize(
    "is_checked", [False, pytest.param(True, marks=(pytest.mark.paddle, pytest.mark.slow))]
)
def test_a_stop_keeps_finished_translations(tmp_path: Path, is_checked: bool) -> None:
    staging = Staging(tmp_path / "mine", "translation")
    staging.parts.mkdir(parents=True)
    with pytest.raises(KeyboardInterrupt):
        translate(staging, is_checked, stops_at=2)
    finished = {path: path.stat().st_mtime_ns for path in staging.parts.iterdir()}
    assert len(finished) >= 2
    translations = translate(staging, is_checked)
    now = {path: path.stat().st_mtime_ns for path in staging.parts.iterdir()}
    assert finished.items() <= now.items() and len(now) == len(SAMPLES)
    assert [translation.sample_id for translation in translations] == sorted(
        sample.id for sample in SAMPLES
    )
    problems = [translation.problem(-5.0 if is_checked else None) for translation in translations]
    assert [bool(problem) for problem in problems] == [False, True, False, False]
    assert "has no rule" in problems[1]
    (table,) = PartReader().rows(translations[0].result)
    assert table["framework"][0].as_py() == "paddle"


def test_a_translation_must_agree_at_the_tolerance() -> None:
    assert _translation(-math.inf).problem(-5.0) == ""
    assert _translation(-4.0).problem(None) == ""
    assert _translation(-4.0).problem(-5.0) == "a: it agrees only at t = -4.00"
    assert _translation(None, "It crashed.").problem(-5.0) == "a: It crashed."


def _translation(min_t: float | None, reason: str = "") -> Translation:
    from graphnet_datasets.storage.mapping import Result

    return Translation("a", Result("torch:a", {}, Path("part"), 0, 1), min_t, reason)
