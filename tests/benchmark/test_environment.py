from __future__ import annotations

import importlib.metadata

import pytest

from graphnet_datasets.benchmark.records.environment import describe_environment, environment_id


def test_the_same_machine_has_the_same_id() -> None:
    assert environment_id(describe_environment()) == environment_id(describe_environment())


def test_flags_that_change_how_fast_a_graph_runs_are_part_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = environment_id(describe_environment())
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    environment = describe_environment()
    assert environment["flags"]["OMP_PROC_BIND"] == "true"
    assert environment_id(environment) != before


def test_where_caches_lie_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = environment_id(describe_environment())
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/somewhere")
    monkeypatch.setenv("PATH", "/elsewhere")
    assert environment_id(describe_environment()) == before


def test_the_packages_are_listed_by_version() -> None:

    assert describe_environment()["packages"]["torch"] == importlib.metadata.version("torch")


def test_variables_of_a_container_image_are_no_flags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("NVIDIA_REQUIRE_CUDA", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_PRODUCT_NAME",
             "NVIDIA_VISIBLE_DEVICES", "CUDA_VERSION", "CUDNN_VERSION")  # fmt: skip
    for name in names:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    monkeypatch.setenv("CUDA_MODULE_LOADING", "EAGER")
    flags = describe_environment()["flags"]
    assert {"NVIDIA_TF32_OVERRIDE", "CUDA_MODULE_LOADING"} <= set(flags)
    assert not set(names) & set(flags)
