"""The exporter's table of operators is made once, and what one export adds no other sees."""

from __future__ import annotations

import importlib

import pytest

pytest.importorskip("onnxscript", reason="onnxscript is not installed")


@pytest.mark.slow
def test_each_export_gets_lists_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphnet_datasets.compilers.onnx_registry import keep_registry

    registration = importlib.import_module("torch.onnx._internal.exporter._registration")
    kind = registration.ONNXRegistry
    made = kind.from_torchlib()
    monkeypatch.setattr(kind, "from_torchlib", kind.from_torchlib)  # put back afterwards
    assert keep_registry()
    assert keep_registry(), "a second time changes nothing"
    first, second = kind.from_torchlib(), kind.from_torchlib()
    assert first.functions.keys() == made.functions.keys()
    assert first.opset_version == made.opset_version
    name = next(iter(first.functions))
    assert first.functions[name][0] is second.functions[name][0], "entries are made once"
    first.functions[name].clear()
    first.functions["mine"] = []
    assert second.functions[name]
    assert "mine" not in kind.from_torchlib().functions


def test_a_torch_that_is_built_otherwise_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphnet_datasets.compilers.onnx_registry import keep_registry

    registration = importlib.import_module("torch.onnx._internal.exporter._registration")
    monkeypatch.delattr(registration, "ONNXRegistry")
    assert not keep_registry()
