"""Compilers that lower the precision by themselves say so."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from graphnet_datasets.compilers import make_compiler  # noqa: E402


@pytest.fixture
def module() -> torch.fx.GraphModule:
    torch.manual_seed(0)
    return torch.fx.symbolic_trace(torch.nn.Linear(256, 256)).eval()


def test_openvino_says_when_it_computes_in_bfloat16(module: torch.fx.GraphModule) -> None:
    openvino = pytest.importorskip("openvino")
    native = openvino.Core().get_property("CPU", "INFERENCE_PRECISION_HINT").get_type_name()
    errors = {}
    inputs = {"input": torch.randn(64, 256)}
    with torch.no_grad():
        for precision in ("default", "f32"):
            compiler = make_compiler("openvino", options={"precision": precision})
            compiled = compiler.compile(module, inputs)
            errors[precision] = float((compiled(**inputs) - module(**inputs)).abs().max())
            used = native if precision == "default" else "f32"
            expected = [] if used == "f32" else [f"precision: float32 is computed in {used}"]
            assert compiler.warnings == expected
    assert errors["f32"] < 1e-5
    if native == "bf16":
        assert errors["default"] > 1e-4


def test_onnxruntime_does_not_run_on_the_cpu_in_the_place_of_a_gpu() -> None:
    pytest.importorskip("onnxruntime")
    from graphnet_datasets.compilers.onnxruntime import _providers
    from graphnet_datasets.errors import CompilerUnavailableError

    assert _providers(torch.device("cpu"), ["CPUExecutionProvider"]) == ["CPUExecutionProvider"]
    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert _providers(torch.device("cuda"), both) == both
    with pytest.raises(CompilerUnavailableError) as error:
        _providers(torch.device("cuda"), ["CPUExecutionProvider"])
    assert str(error.value) == (
        "The compiler `onnxruntime` cannot run here: the installed package has no CUDA execution "
        "provider. Install `onnxruntime-gpu`."
    )


def test_tensorrt_counts_operators_left_to_torch(module: torch.fx.GraphModule) -> None:
    from graphnet_datasets.compilers.tensorrt import TensorRT

    whole = torch.nn.Module()
    whole._run_on_acc_0 = module
    whole._run_on_gpu_1 = torch.fx.symbolic_trace(torch.nn.ReLU())
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("_run_on_gpu_1", (graph.call_module("_run_on_acc_0", (x,)),)))
    compiler = TensorRT()
    compiler._note_share_left_to_torch(torch.fx.GraphModule(whole, graph), total=4)
    assert compiler.warnings == ["fallback: 25% of the operators left to eager"]
    assert compiler.fallback_share == 0.25
