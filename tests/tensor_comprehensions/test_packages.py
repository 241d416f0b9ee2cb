"""Packages of kernels work without a C compiler, and refuse damage and other processors."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import numpy as np
import pytest

from graphnet_datasets import tensor_comprehensions as tc
from graphnet_datasets.errors import KernelInputError, TensorComprehensionError
from graphnet_datasets.tensor_comprehensions.packages import MANIFEST

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

DEFINITION = tc.define("""
def sums(float(N,M) A) -> (O) { O(i) +=! A(i,j) * A(i,j) }
def powers(float(N) A, int32 k) -> (O) { O(i) = A(i) * k }
""")


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def test_kernels_run_without_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tc.save_package(
        tmp_path / "kernels", DEFINITION, [("sums", array(5, 7)), ("powers", array(9), 3)]
    )
    monkeypatch.setenv("PATH", "")
    loaded = tc.load_package(path)
    for shape in ((5, 7), (300, 40)):
        values = array(*shape)
        np.testing.assert_allclose(loaded.sums(values), (values * values).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(loaded.powers(array(9), 3), array(9) * 3)
    np.testing.assert_array_equal(loaded.powers(array(20), 5), array(20) * 5)
    kernel = loaded.compile("sums", array(5, 7)).kernel
    assert kernel.path.parent == path
    assert kernel.threads == 1


def test_problems_of_packages_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [("sums", array(5, 7))]
    path = tc.save_package(tmp_path / "kernels", DEFINITION, calls, is_general=False)
    with pytest.raises(TensorComprehensionError, match="There is no target `z80`"):
        tc.save_package(tmp_path / "other", DEFINITION, calls, target="z80")
    assert not (tmp_path / "other").exists()
    (shared_object,) = path.glob("*.so")
    with monkeypatch.context() as without_compiler:
        without_compiler.setenv("PATH", "")
        loaded = tc.load_package(path)
        with pytest.raises(KernelInputError, match=r"has no kernel of `sums` for A\[6, 7\]"):
            loaded.sums(array(6, 7))
    loaded = tc.load_package(path)
    np.testing.assert_allclose(loaded.sums(array(6, 7)), (array(6, 7) ** 2).sum(1), rtol=1e-5)
    shared_object.write_bytes(shared_object.read_bytes() + b"\0")
    with pytest.raises(TensorComprehensionError, match="is damaged or missing"):
        tc.load_package(path).sums(array(5, 7))
    manifest = json.loads((path / MANIFEST).read_text())
    manifest["flags"].append("time_travel")
    (path / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(TensorComprehensionError, match="this one lacks time_travel"):
        tc.load_package(path)
    (path / MANIFEST).write_text("{}")
    with pytest.raises(TensorComprehensionError, match="is not a package of kernels in format 1"):
        tc.load_package(path)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86-64 processor")
def test_kernels_for_older_processors(tmp_path: Path) -> None:
    calls = [("sums", array(5, 7))]
    path = tc.save_package(tmp_path / "kernels", DEFINITION, calls, target="x86-64-v2")
    manifest = json.loads((path / MANIFEST).read_text())
    assert manifest["machine"]["isa"] == "baseline"
    assert "avx2" not in manifest["flags"]
    loaded = tc.load_package(path)
    for shape in ((5, 7), (8, 3)):
        values = array(*shape)
        np.testing.assert_allclose(loaded.sums(values), (values * values).sum(1), rtol=1e-5)
