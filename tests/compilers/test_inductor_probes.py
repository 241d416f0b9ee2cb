"""Answers of torch's probes of vector instructions in the user's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from graphnet_datasets.compilers.inductor import _known_probes
from graphnet_datasets.user_cache import cache_directory

pytestmark = pytest.mark.torch


def test_a_probe_that_succeeded_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor import cpu_vec_isa

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    probed: list[str] = []

    def probe(self: object, code: str) -> bool:
        del self
        probed.append(code)
        return code != "fails"

    monkeypatch.setattr(cpu_vec_isa.VecISA, "check_build", probe)
    isa = cpu_vec_isa.VecAVX2()
    for _ in range(2):
        with _known_probes():
            assert isa.check_build("works")
            assert not isa.check_build("fails")
        assert cpu_vec_isa.VecISA.check_build is probe
    assert probed == ["works", "fails", "fails"]
    compiler = tmp_path / "other"
    compiler.write_text("#!/bin/sh")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with _known_probes():
        assert isa.check_build("works")
    assert probed[3:] == ["works"], "another compiler is another answer"
    assert len([*cache_directory("vector_instructions").iterdir()]) == 2
