"""The compilers that come with this library, and those that are run if none is named."""

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
"""Programs that compilers start besides Python, the C++ toolchain and those in their packages."""

_USUAL: Mapping[str, tuple[str, str]] = {
    "torch": ("eager", "inductor"),
    "paddle": ("paddle-eager", "paddle-to-static"),
}


def usual_compilers(framework: str) -> tuple[str, str]:
    """Return the control of a framework, and the compiler that is run if none is named.

    >>> usual_compilers("torch")
    ('eager', 'inductor')
    """
    return _USUAL.get(framework, ("eager", "eager"))
