"""The compiler that leaves a graph to the one that records recommend."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="needs the extra `tuning`")

import torch

from graphnet_datasets.benchmark import write_runs
from graphnet_datasets.errors import CompilerError, TuningError
from graphnet_datasets.schema import empty_run
from graphnet_datasets.tuning.dispatch.compilers import graph_features, learn_compilers
from graphnet_datasets.tuning.dispatch_compiler import Dispatch


def record(sample: str, compiler: str, num_ops: int, speedup: float, **columns: Any) -> dict:
    eager_ms = num_ops / 1000
    told = {
        "run_id": f"{sample}/{compiler}",
        "sample_id": sample,
        "compiler": compiler,
        "num_ops": num_ops,
        "status": "ok",
        "min_t": -6.0,
        "speedup": speedup,
        "baseline_latency_ms": [eager_ms] * 3,
        "candidate_latency_ms": [eager_ms / speedup] * 3,
    }
    return {**empty_run(), **told, **columns}


def records(**columns: Any) -> list[dict[str, Any]]:
    """TorchScript wins on graphs of many operators and loses on others, tvm always loses."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(60):
        num_ops = int(rng.integers(2, 40) if number % 2 else rng.integers(400, 4000))
        gain = 2.0 if num_ops > 100 else 0.5
        rows.append(record(f"s{number}", "torchscript", num_ops, gain, **columns))
        rows.append(record(f"s{number}", "tvm", num_ops, 0.1, **columns))
    return rows


def test_each_size_of_graph_gets_the_compiler_that_was_best_on_it() -> None:
    learnt = learn_compilers(records())
    assert learnt.choose(graph_features(5, 0.005)) == "eager"
    assert learnt.choose(graph_features(2000, 2.0)) == "torchscript"


@pytest.mark.parametrize("columns", [{"min_t": -1.0}, {"min_t": None}, {"status": "failed"}])
def test_a_compiler_that_is_wrong_or_fails_is_never_chosen(columns: dict[str, Any]) -> None:
    learnt = learn_compilers(records(**columns))
    assert {learnt.choose(graph_features(n, n / 1000)) for n in (5, 100, 2000)} == {"eager"}


def test_samples_that_a_compiler_has_no_record_of_do_not_count() -> None:
    with pytest.raises(TuningError, match=r"9 samples have a record of every compiler"):
        learn_compilers(records()[: 2 * 9 + 1])
    with pytest.raises(TuningError, match=r"\(none\)"):
        learn_compilers([])


class Short(torch.nn.Module):
    """One operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


class Long(torch.nn.Module):
    """Many small operators: what TorchScript is recommended for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(400):
            x = torch.sin(x)
        return x


def test_a_graph_is_compiled_by_the_compiler_of_its_size(tmp_path: Path) -> None:
    runs = tmp_path / "runs.parquet"
    write_runs(records(), runs)
    x = torch.linspace(0, 1, 8)
    inputs = {"x": x}
    for module, name in ((Long(), "torchscript"), (Short(), "eager")):
        traced = torch.fx.symbolic_trace(module)
        compiler = Dispatch({"runs": str(runs)})
        compiled = compiler.compile(traced, inputs)
        assert compiler.warnings[0].startswith(f"dispatch: chose {name} for ")
        torch.testing.assert_close(compiled(**inputs), traced(**inputs))
        assert compiler.num_compilations() >= 1
        assert (compiler.chosen is None) == (name == "eager")


def test_records_have_to_be_named() -> None:
    with pytest.raises(CompilerError, match=r"option `runs=./runs`"):
        Dispatch().compile(torch.nn.Identity(), {})


def test_features_are_finite_where_eager_takes_no_time() -> None:
    assert all(math.isfinite(each) for each in graph_features(0, 0.0))
