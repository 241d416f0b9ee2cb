"""TorchInductor's options become its configuration."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from graphnet_datasets.compilers.inductor import Inductor  # noqa: E402
from graphnet_datasets.errors import CompilerError  # noqa: E402


def test_defaults_change_nothing() -> None:
    assert Inductor()._config == {}


def test_options_take_their_names_in_the_configuration() -> None:
    compiler = Inductor(
        {
            "mode": "max-autotune-no-cudagraphs",
            "freezing": True,
            "cpp_wrapper": True,
            "config": {"max_autotune_gemm": False},
        }
    )
    assert compiler._config["max_autotune"] is True
    assert compiler._config["max_autotune_gemm"] is False
    assert compiler._config["freezing"] is True
    assert compiler._config["cpp_wrapper"] is True


def test_an_unknown_configuration_is_refused() -> None:
    with pytest.raises(CompilerError) as error:
        Inductor({"config": {"no_such_option": 1}})
    assert str(error.value) == (
        "TorchInductor has no option `no_such_option`. Its options are the names in "
        "`torch._inductor.config`."
    )


def test_without_a_cpp_compiler_it_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert Inductor.is_available() == (
        False,
        "there is no C++ compiler (neither `g++` nor `clang++` nor $CXX)",
    )
