"""The compilers that come with this library: (framework, name, module:class)."""

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
