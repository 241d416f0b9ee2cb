"""`tvm-oneshot` with a predictor that was fitted to measured records of another operator."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from graphnet_datasets import Sample  # noqa: E402
from graphnet_datasets.frameworks import make_inputs, materialize  # noqa: E402
from graphnet_datasets.storage.selection import select_rows  # noqa: E402
from graphnet_datasets.tuning import Pool, PoolSpace  # noqa: E402
from graphnet_datasets.tuning.collecting import collect_tasks  # noqa: E402
from graphnet_datasets.tuning.compiler import TvmOneShot  # noqa: E402
from graphnet_datasets.tuning.isolated_space import IsolatedSpace  # noqa: E402
from graphnet_datasets.tuning.measure import LiveMeasurer, TimingPlan  # noqa: E402
from graphnet_datasets.tuning.models.predictor import Predictor  # noqa: E402

from .live import SAMPLE, needs_tvm  # noqa: E402


@needs_tvm
@pytest.mark.slow
def test_the_best_predicted_schedule_is_used_and_correct(tmp_path: Path) -> None:
    report = collect_tasks(SAMPLE, tmp_path / "tasks", jobs=1)
    task = next(each for each in report.tasks if each.family == "matmul")
    with (
        IsolatedSpace() as space,
        LiveMeasurer([task], plan=TimingPlan(repeat=2, min_repeat_ms=1)) as measurer,
    ):
        rows = [
            dataclasses.replace(row, record_id=str(number))
            for number, row in enumerate(measurer.measure(space.sample(task, 6, seed=0)))
        ]
    pool = Pool([task], rows)
    predictor = Predictor(PoolSpace(pool), [task], epochs=4, width=16)
    predictor.fit(pool.rows(task))
    predictor.save(tmp_path / "predictor.npz")
    sample = Sample.from_row(select_rows(SAMPLE)[0])
    module = materialize(sample, weights="parameters")
    inputs = make_inputs(sample, weights="parameters")
    compiler = TvmOneShot(
        {
            "predictor": str(tmp_path / "predictor.npz"),
            "num_threads": 1,
            "candidates": 8,
            "min_flops": 1_000_000,
        }
    )
    with torch.no_grad():
        outputs = compiler.compile(module, dict(inputs))(**inputs)
        expected = module(**inputs)
    for mine, right in zip(
        torch.utils._pytree.tree_leaves(outputs),
        torch.utils._pytree.tree_leaves(expected),
        strict=True,
    ):
        torch.testing.assert_close(mine, right, rtol=1e-4, atol=1e-4)
    assert 1 <= compiler.coverage.num_tuned <= compiler.coverage.num_tasks
    assert compiler.coverage.tuning_s == 0.0  # nothing was run
