"""`graphnet compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..scores.run_rows import make_run
from .test_score import invoke, write


@pytest.fixture
def sets(tmp_path: Path) -> tuple[Path, Path]:
    a = [make_run("x", 2.0), make_run("y", 1.0)]
    b = [make_run("x", 1.0), make_run("y", 1.0)]
    return write(tmp_path / "a.parquet", a), write(tmp_path / "b.parquet", b)


def test_a_regression_exits_3(sets: tuple[Path, Path]) -> None:
    a, b = sets
    result = invoke("compare", a, b)
    assert result.exit_code == 3
    assert "Regressions (slower by more than 5%, or broken):" in result.stdout


def test_tolerated_regressions_exit_0(sets: tuple[Path, Path]) -> None:
    a, b = sets
    assert invoke("compare", b, a).exit_code == 0
    assert invoke("compare", a, b, "--allow", 1).exit_code == 0
    assert invoke("compare", a, b, "--threshold", 0.6).exit_code == 0


def test_json(sets: tuple[Path, Path]) -> None:
    result = invoke("compare", *sets, "--json")
    found = json.loads(result.stdout)
    assert [row["sample_id"] for row in found["regressions"]] == ["x"]
    assert found["speedup"] == pytest.approx(0.5**0.5)


def test_two_compilers_of_one_run_set(tmp_path: Path) -> None:
    runs = write(
        tmp_path / "runs.parquet",
        [make_run("x", 2.0), make_run("x", 4.0, compiler="torchscript")],
    )
    result = invoke("compare", runs, runs)
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: `{runs}` contains runs of `inductor`, `torchscript`. Choose one with "
        "`--compiler-a`.\n"
    )
    result = invoke(
        "compare", runs, runs, "--compiler-a", "inductor", "--compiler-b", "torchscript"
    )
    assert result.exit_code == 0
    assert "Speedup of B over A (speedup): 2.000" in result.stdout


def test_help_shows_an_example() -> None:
    assert "Example: graphnet compare" in invoke("compare", "--help").stdout


@pytest.mark.parametrize("tolerance", [None, -3, 0])
def test_an_all_zero_compiler_is_no_improvement(tmp_path: Path, tolerance: int | None) -> None:
    """Nor in the table of scores, nor in the exit code."""
    nulls = [-0.2 * index for index in range(11)]
    a = [make_run(str(t), 1.0, min_t=t - 4, null_t=t, family=str(t)) for t in nulls]
    b = [make_run(str(t), 1952.0, min_t=t, null_t=t, family=str(t)) for t in nulls]
    paths = write(tmp_path / "a.parquet", a), write(tmp_path / "b.parquet", b)
    options = [] if tolerance is None else ["--tolerance", tolerance]
    result = invoke("compare", *paths, *options, "--json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["counts"]["faster"] == found["counts"]["fixed"] == 0
    assert found["counts"]["broken"] == len(nulls)
    assert found["tolerance"] == (-3 if tolerance is None else tolerance)
    assert max(value for value in found["b"]["S"].values() if value is not None) < 0.11
    assert invoke("compare", paths[1], paths[1]).exit_code == 0
