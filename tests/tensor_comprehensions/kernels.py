"""What tests of kernels share: a definition at sizes, compiled, called and compared."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence

import numpy as np

from graphnet_datasets.tensor_comprehensions.compiling import compile_general, compile_instance
from graphnet_datasets.tensor_comprehensions.kernel import Kernel
from graphnet_datasets.tensor_comprehensions.language import Instance, check, instantiate
from graphnet_datasets.tensor_comprehensions.language.instance import Tensor
from graphnet_datasets.tensor_comprehensions.language.interpreter import interpret
from graphnet_datasets.tensor_comprehensions.options import Options
from graphnet_datasets.tensor_comprehensions.tuner.space import space_of

from .definitions import ROUNDING, Case

SCALAR = Options(backend="scalar", intra_fusion="min", threads=1)


def instance_of(source: str, *shapes: Sequence[int], check_bounds: bool = False) -> Instance:
    """Return the first definition of a source at these shapes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return instantiate(check(source)[0], shapes, check_bounds=check_bounds)


def inputs_of(instance: Instance, gathers: dict[int, int] | None = None) -> list[np.ndarray]:
    """Return inputs; those in `gathers` hold subscripts below the number given."""
    generator = np.random.default_rng(0)
    arrays = []
    for place, tensor in enumerate(instance.inputs):
        if tensor.dtype.is_float:
            arrays.append(np.asarray(generator.standard_normal(tensor.shape, np.float32)))
        else:
            low = 0 if tensor.dtype.kind == "uint" or place in (gathers or {}) else -50
            high = (gathers or {}).get(place, 2 if tensor.dtype.is_bool else 50)
            arrays.append(np.asarray(generator.integers(low, high, tensor.shape)))
        if tensor.dtype.name != "bfloat16":  # which NumPy lacks
            arrays[-1] = arrays[-1].astype(tensor.dtype.name)
    return arrays


def assert_right(
    instance: Instance,
    inputs: Sequence[np.ndarray],
    options: Options | None = None,
    tolerance: float = 4e-6,
) -> Kernel:
    """Compile an instance and compare what it computes with the interpreter in float64."""
    kernel = compile_instance(instance, options)
    wanted = interpret(instance, inputs, float64=True)
    for tensor, got, want in zip(instance.outputs, kernel(*inputs), wanted, strict=True):
        assert got.shape == want.shape
        scale = max(1.0, float(np.abs(want.astype(np.float64)).max(initial=0)))
        difference = np.abs(got.astype(np.float64) - want.astype(np.float64)).max(initial=0)
        assert difference <= tolerance * scale, f"{tensor.name} differs by {difference}"
    return kernel


def assert_agree(case: Case) -> None:
    """Compare the interpreter with scalar, default, randomly optimised and general code."""
    wanted = interpret(case.instance, case.inputs, case.outputs)
    generator = random.Random(case.source)  # noqa: S311 (a choice of options, no secret)
    drawn = space_of(case.instance).draw(generator, Options(threads=2))
    tensors = {tensor.name: tensor for tensor in case.instance.tensors}
    inputs = [
        _stored(tensor, array)
        for tensor, array in zip(case.instance.inputs, case.inputs, strict=True)
    ]
    kernels = [
        compile_instance(case.instance, options) for options in (SCALAR, Options(threads=2), drawn)
    ]
    for kernel in (*kernels, compile_general(case.instance)):
        outputs = {name: _stored(tensors[name], array) for name, array in case.outputs.items()}
        results = kernel(*inputs, outputs=outputs)
        for tensor, got, want in zip(case.instance.outputs, results, wanted, strict=True):
            rtol = ROUNDING.get(tensor.dtype.name, 2e-4)
            if tensor.dtype.name == "bfloat16":
                got = (got.astype(np.uint32) << 16).view(np.float32)
            np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-4, err_msg=case.source)


def _stored(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """Return a copy of an array as a kernel stores it: bfloat16 as the upper half of float32."""
    if tensor.dtype.name == "bfloat16":
        return (array.view(np.uint32) >> 16).astype(np.uint16)
    return array.copy()
