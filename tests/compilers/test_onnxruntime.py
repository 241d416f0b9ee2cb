"""ONNX Runtime as it is set up: whose threads may wait in a loop, and until when."""

import pytest
import torch

from graphnet_datasets.compilers.onnxruntime import OnnxRuntime

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ({}, "session.force_spinning_stop", "1"),
        ({"spinning": "within_calls"}, "session.force_spinning_stop", "1"),
        ({"spinning": "never"}, "session.intra_op.allow_spinning", "0"),
    ],
)
def test_threads_spin_as_long_as_requested(options: dict[str, str], name: str, value: str) -> None:
    settings = OnnxRuntime(options)._session_options(onnxruntime)
    assert settings.get_session_config_entry(name) == value


def test_the_default_of_onnxruntime_can_be_had() -> None:
    settings = OnnxRuntime({"spinning": "always"})._session_options(onnxruntime)
    for name in ("session.force_spinning_stop", "session.intra_op.allow_spinning"):
        with pytest.raises(RuntimeError):
            settings.get_session_config_entry(name)


@pytest.mark.filterwarnings("ignore")  # the exporter's own
@pytest.mark.parametrize("spinning", ["within_calls", "always", "never"])
def test_outputs_do_not_depend_on_spinning(spinning: str) -> None:
    module = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()))
    inputs = {"input": torch.randn(4, 8, generator=torch.Generator().manual_seed(0))}
    with torch.no_grad():
        compiled = OnnxRuntime({"spinning": spinning}).compile(module, inputs)
        torch.testing.assert_close(compiled(**inputs), module(**inputs))
