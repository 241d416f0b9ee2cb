"""`graphnet tc`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.tc import paper
from graphnet_datasets.cli.app import app
from graphnet_datasets.tensor_comprehensions import load_package
from graphnet_datasets.tensor_comprehensions.language import check
from graphnet_datasets.tensor_comprehensions.language.printing import canonical_text

EXAMPLES = Path(__file__).parents[2] / "examples" / "tc"
SOURCE = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mm.tc"
    path.write_text(SOURCE)
    return str(path)


def invoke(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["tc", *words])
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.tc")), ids=lambda path: path.stem)
def test_the_paper_s_kernels_are_well_formed(path: Path) -> None:
    assert "statements" in invoke("check", str(path))


def test_every_kernel_of_the_paper_is_an_example() -> None:
    examples = {text for path in EXAMPLES.glob("*.tc") for text in _canonical(path.read_text())}
    for kernel in paper.kernels():
        assert _canonical(kernel.source) <= examples, kernel.name


def _canonical(source: str) -> set[str]:
    return {canonical_text(each) for each in check(source)}


def test_check_points_at_the_first_error(tmp_path: Path) -> None:
    path = tmp_path / "wrong.tc"
    path.write_text("def f(float(N) A) -> (O) {\n    O(i) = A(i,i)\n}")
    found = invoke("check", str(path), code=1)
    assert "Expected 1 dimensions of `A` but found 2." in found
    assert "line 2:     O(i) = A(i,i)" in found
    assert "^^^^^^" in found


def test_package_writes_kernels_that_load(file: str, tmp_path: Path) -> None:
    pytest.importorskip("islpy", reason="needs islpy (extra tc)")
    out = tmp_path / "kernels"
    output = invoke("package", file, "--out", str(out), "--shape", "A=4,5", "--shape", "B=5,6")
    assert output == f"Wrote the kernels of mm for native to {out}.\n"
    a, b = np.ones((4, 5), "float32"), np.ones((5, 6), "float32")
    np.testing.assert_array_equal(load_package(out).mm(a, b), a @ b)


def test_infer_prints_ranges_and_shapes(file: str) -> None:
    found = invoke("infer", file, "--shape", "A=4,5", "--shape", "B=5,6")
    assert found.splitlines() == [
        "C(m,n) +=! A(m,k) * B(k,n)",
        "    m in 0 : M  = 0:4",
        "    n in 0 : N  = 0:6",
        "    k in 0 : K  = 0:5",
        "float32 C(M, N) = (4, 6)",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shape", "A=4,5"], "The sizes of `B` are missing. Pass --shape B=K,N with numbers."),
        (["--shape", "A=4,5", "--shape", "B=4,5"], "is 4, but must be `K`, which is 5"),
        (["--shape", "A=4,x", "--shape", "B=4,5"], "contains a value that is not an integer"),
        (["--shape", "A"], "`A` is not written as NAME=VALUE."),
        (["--entry", "nn"], "There is no definition `nn`; choose from mm."),
    ],
)
def test_wrong_sizes_are_one_sentence(file: str, words: list[str], message: str) -> None:
    assert message in " ".join(invoke("infer", file, *words, code=1).split())


def test_interpret_reads_and_writes_files(file: str, tmp_path: Path) -> None:
    a, b = (np.random.default_rng(n).random((3, 3)).astype("float32") for n in (0, 1))
    for name, array in (("a", a), ("b", b)):
        np.save(tmp_path / f"{name}.npy", array)
    words = ["--input", f"A={tmp_path}/a.npy", "--input", f"B={tmp_path}/b.npy"]
    assert "C: float32[3, 3]" in invoke("interpret", file, *words, "--out", str(tmp_path / "out"))
    np.testing.assert_allclose(np.load(tmp_path / "out" / "C.npy"), a @ b, rtol=1e-5)


def test_compile_bench_tune_and_cache(file: str, tmp_path: Path) -> None:
    pytest.importorskip("islpy", reason="needs islpy (extra tc)")
    shapes = ["--shape", "A=8,9", "--shape", "B=9,7"]
    assert "void tc_kernel" in invoke("compile", file, *shapes)
    assert "sequence" in invoke("compile", file, *shapes, "--emit", "schedule")
    assert invoke("compile", file, *shapes, "--emit", "svg").startswith("<svg")
    assert "__global__" in invoke("compile", file, *shapes, "--emit", "cuda")
    assert "S0(c" in invoke("compile", file, *shapes, "--emit", "loops")
    assert "Expected c, cuda" in invoke("compile", file, *shapes, "--emit", "x", code=2)
    assert "mm: median" in invoke("bench", file, *shapes, "--runs", "2")
    cache = str(tmp_path / "cache.parquet")
    few = ["--population", "2", "--generations", "1"]
    assert "Options(" in invoke("tune", file, *shapes, "--cache", cache, *few)
    assert "rows" in invoke("cache", cache)
    assert "mm: median" in invoke("bench", file, *shapes, "--runs", "2", "--cache", cache)


@pytest.mark.torch
def test_from_graph_prints_definitions() -> None:
    found = invoke("from-graph", "torch/mlp-mnist")
    assert "def group_0(" in found
    assert "100% of" in found
