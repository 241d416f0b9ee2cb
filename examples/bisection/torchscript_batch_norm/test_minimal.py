"""Shows that torchscript 2.13.0+cpu fails on a part of torch_geometric/MLP-train: outputs that pass
only from t = -0.03 on, above -3. Found by `graphnet bisect`, options {'freeze': True,
'optimize_for_inference': True}. Run it with `python` or `pytest`.
"""

import base64
import zlib
import torch

SEED = 0
DEVICE = 'cpu'
THREADS = 1
ELEMENTS = zlib.decompress(base64.b64decode(
    "eNozvda3/5rQRnsGKHi77d7ewn7NvTB+nPPJPQxIYLNul/XlpsU2MP7E2Qn2N+J64foT5RrtGc7Xw/lzxBbYvBIxg6sH"
    "AFbsGOs="
))
INPUTS = [
    ('input_0', 'float32', (2, 1), None, 0),
    ('parameter_0', 'float32', (2, 1), None, 16),
    ('parameter_1', 'float32', (1,), None, 32),
    ('buffer_0', 'float32', (2,), None, 48),
    ('buffer_1', 'float32', (2,), None, 64),
    ('parameter_2', 'float32', (2,), None, 80),
    ('parameter_3', 'float32', (2,), None, 96),
]
WEIGHTS = [
    'parameter_0',
    'parameter_1',
    'buffer_0',
    'buffer_1',
    'parameter_2',
    'parameter_3',
]


class GraphModule(torch.nn.Module):
    def forward(
        self,
        input_0: torch.Tensor,
        parameter_0: torch.nn.parameter.Parameter,
        parameter_1: torch.nn.parameter.Parameter,
        buffer_0: torch.Tensor,
        buffer_1: torch.Tensor,
        parameter_2: torch.nn.parameter.Parameter,
        parameter_3: torch.nn.parameter.Parameter,
    ):
        linear_0 = torch.nn.functional.linear(input_0, parameter_0, parameter_1)
        batch_norm_1 = torch.nn.functional.batch_norm(linear_0, buffer_0, buffer_1, parameter_2, parameter_3, True, 0.1, 1e-05)
        return (batch_norm_1,)


class Bound(torch.nn.Module):
    """The graph with its weights held by the module."""

    def __init__(self, weights):
        super().__init__()
        self.graph = GraphModule()
        for name, tensor in weights.items():
            if tensor.is_floating_point() or tensor.is_complex():
                self.register_parameter(name, torch.nn.Parameter(tensor, requires_grad=False))
            else:
                self.register_buffer(name, tensor)

    def forward(self, input_0):
        return self.graph(input_0=input_0, parameter_0=self.parameter_0, parameter_1=self.parameter_1, buffer_0=self.buffer_0, buffer_1=self.buffer_1, parameter_2=self.parameter_2, parameter_3=self.parameter_3)


def make_inputs():
    made = {}
    for name, *place in INPUTS:
        if len(place) == 1:
            made[name] = place[0]
            continue
        dtype, shape, stride, offset = getattr(torch, place[0]), *place[1:]
        size = torch.Size(shape).numel()
        plain = torch.empty(0, dtype=dtype)
        if size:
            plain = torch.frombuffer(bytearray(ELEMENTS), dtype=dtype, count=size, offset=offset)
        plain = plain.reshape(shape).clone()
        if stride is not None:
            plain = torch.empty_strided(shape, stride, dtype=dtype).copy_(plain)
        made[name] = plain.to(DEVICE)
    return made


def split_inputs():
    made = make_inputs()
    return {name: made.pop(name) for name in WEIGHTS}, made


def call(module, inputs):
    torch.manual_seed(SEED)
    copies = {name: each.clone() if isinstance(each, torch.Tensor) else each
              for name, each in inputs.items()}
    return torch.utils._pytree.tree_leaves(module(**copies))


class Flat(torch.nn.Module):
    def __init__(self, module, inputs):
        super().__init__()
        self.module = module
        self.names = [name for name, each in inputs.items() if isinstance(each, torch.Tensor)]
        self.numbers = {name: each for name, each in inputs.items() if name not in self.names}

    def forward(self, *tensors):
        outputs = self.module(**dict(zip(self.names, tensors)), **self.numbers)
        leaves = torch.utils._pytree.tree_leaves(outputs)
        return tuple(each for each in leaves if isinstance(each, torch.Tensor))


def compile_module(module, inputs):
    flat = Flat(module, inputs).eval()
    tensors = tuple(inputs[name] for name in flat.names)
    traced = torch.jit.trace(flat, tensors, check_trace=False, strict=False)
    traced = torch.jit.freeze(traced)
    traced = torch.jit.optimize_for_inference(traced)
    return lambda **inputs: traced(*(inputs[name] for name in flat.names))


TOLERANCES = {
    torch.float64: (6.309573444801943e-05, 6.309573444801943e-05),
    torch.float32: (0.001, 0.0002940356573672507),
    torch.float16: (0.001, 0.01584893192461114),
    torch.bfloat16: (0.001, 0.08363729915840257),
    torch.complex64: (0.001, 0.0002940356573672507),
    torch.complex128: (6.309573444801943e-05, 6.309573444801943e-05),
}
"""atol and rtol at t = -3."""


def run_both():
    torch.set_num_threads(THREADS)
    weights, inputs = split_inputs()
    with torch.no_grad():
        expected = call(Bound(weights), inputs)
        compiled = compile_module(Bound(weights), inputs)
        return expected, [call(compiled, inputs) for _ in range(3)]


def test_minimal():
    expected, calls = run_both()
    for actual in calls:
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            atol, rtol = TOLERANCES.get(other.dtype, (0.0, 0.0))
            torch.testing.assert_close(one, other, atol=atol, rtol=rtol, equal_nan=True)


if __name__ == "__main__":
    test_minimal()
    print("It does not fail here.")
