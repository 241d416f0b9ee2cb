"""What one user tuned spares another the search: through a repository on the Hub."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.hub import push_rows
from graphnet_datasets.tensor_comprehensions import Options, define
from graphnet_datasets.tensor_comprehensions.cache import TuningCache
from graphnet_datasets.tensor_comprehensions.codegen.toolchain import object_directory
from graphnet_datasets.tensor_comprehensions.tuner import TunerConfig
from tests.hub_server import Hub

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

REPO = "lab/tuned"
SOURCE = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
RENAMED = "def mul(float(X,Y) P, float(Y,Z) Q) -> (R) { R(x,z) +=! P(x,y) * Q(y,z) }"


def test_a_cold_user_gets_a_tuned_kernel_without_tuning(
    hub: Hub,  # noqa: ARG001 (its address is what everything talks to)
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(0)
    a = generator.standard_normal((24, 40), np.float32)
    b = generator.standard_normal((40, 36), np.float32)
    mine = TuningCache(tmp_path / "mine.parquet")
    config = TunerConfig(population=3, generations=1, elites=1, num_runs=3, compile_workers=1)
    start = Options().with_micro(4, 1)
    tuned = define(SOURCE).autotune("mm", a, b, start=start, config=config, cache=mine.path)
    pushed = push_rows(mine.table(), REPO, "tc_cache")
    assert pushed.num_added == mine.table().num_rows > 1

    # Another home: no compiled objects, no table of options, and other names in the definition.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cold"))
    assert not list(object_directory().iterdir())
    theirs = tmp_path / "theirs.parquet"
    definition = define(RENAMED)
    assert definition.cached_options("mul", a, b, cache=theirs) is None
    result = CliRunner().invoke(app, ["tc", "cache", str(theirs), "--from", REPO])
    assert result.exit_code == 0, result.output
    assert f"{pushed.num_added} rows of {REPO}" in result.stderr
    found = definition.cached_options("mul", a, b, cache=theirs)
    assert found == tuned
    kernel = definition.compile("mul", a, b, options=found)
    assert len(list(object_directory().glob("*.so"))) == 1
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-4)
    assert TuningCache(theirs).table().equals(mine.table())
    again = TuningCache(theirs)
    assert again.merge_dataset(REPO) == pushed.num_added
    assert again.table().equals(mine.table())


def test_a_dataset_without_tuned_options_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GraphNetError):
        TuningCache(tmp_path / "c.parquet").merge_dataset(tmp_path / "nothing")
    assert not (tmp_path / "c.parquet").exists()
