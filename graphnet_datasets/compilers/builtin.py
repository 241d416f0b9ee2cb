"""The compilers of this library and the default compiler of each framework."""

from collections.abc import Mapping

BUILTIN: tuple[tuple[str, str, str], ...] = (
    ("torch", "eager", "eager:Eager"),
    ("torch", "inductor", "inductor:Inductor"),
    ("torch", "aot_eager", "aot_eager:AOTEager"),
    ("torch", "cudagraphs", "cudagraphs:CudaGraphs"),
    ("torch", "aotinductor", "aotinductor:AOTInductor"),
    ("torch", "torchscript", "torchscript:TorchScript"),
    ("torch", "onnxruntime", "onnxruntime:OnnxRuntime"),
    ("torch", "openvino", "openvino:OpenVino"),
    ("torch", "tvm", "tvm:Tvm"),
    ("torch", "iree", "iree:Iree"),
    ("torch", "jax", "jax:Jax"),
    ("torch", "tensorrt", "tensorrt:TensorRT"),
    ("torch", "xla", "xla:Xla"),
    ("torch", "hidet", "hidet:Hidet"),
    ("torch", "bladedisc", "bladedisc:BladeDisc"),
    ("paddle", "paddle-eager", "paddle_eager:PaddleEager"),
    ("paddle", "paddle-to-static", "paddle_to_static:PaddleToStatic"),
    ("paddle", "cinn", "paddle_cinn:PaddleCinn"),
    ("paddle", "paddle-inference", "paddle_inference:PaddleInference"),
)
"""(framework, name, module:class)."""

PROGRAMS: Mapping[str, tuple[str, ...]] = {"iree": ("sh",)}
"""Programs a compiler starts, other than Python, the C++ toolchain and those of Python packages."""

_USUAL: Mapping[str, tuple[str, str]] = {
    "torch": ("eager", "inductor"),
    "paddle": ("paddle-eager", "paddle-to-static"),
}


def usual_compilers(framework: str) -> tuple[str, str]:
    """Return the baseline compiler and the default compiler of a framework.

    >>> usual_compilers("torch")
    ('eager', 'inductor')
    """
    return _USUAL.get(framework, ("eager", "eager"))
