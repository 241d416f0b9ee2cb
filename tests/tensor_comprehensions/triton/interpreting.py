"""Generated Triton executed by Triton's interpreter, in a process with TRITON_INTERPRET=1.

    TRITON_INTERPRET=1 python -m tests.tensor_comprehensions.triton.interpreting NAME ...

Prints a line of JSON per case: its name, and an error or the largest difference from the
language's interpreter relative to the scale of the output. Triton's interpreter has no libdevice,
so those functions are evaluated by NumPy, as in the language's interpreter. It stores bfloat16 as
the upper half of float32 and multiplies the bits in `tl.dot`, so factors are widened first.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

import numpy as np
import torch

from graphnet_datasets.tensor_comprehensions.language.functions import numpy_function
from graphnet_datasets.tensor_comprehensions.language.interpreter import interpret
from graphnet_datasets.tensor_comprehensions.triton import load_functions, write_triton

from .cases import CASES, Case


class Libdevice:
    """Functions of CUDA's libdevice on the values of Triton's interpreter."""

    def __getattr__(self, name: str) -> Any:
        import triton.language as tl
        from triton.runtime.interpreter import TensorHandle

        function = numpy_function(name)
        assert function is not None

        def apply(*arguments: Any) -> Any:
            arrays = [np.asarray(argument.handle.data) for argument in arguments]
            dtype = arrays[0].dtype
            if name != "nextafter":
                arrays = [array.astype(np.float64) for array in arrays]
            data = np.asarray(function(*arrays)).astype(dtype)
            widest = max(arguments, key=lambda argument: argument.handle.data.size)
            return tl.tensor(TensorHandle(data, widest.dtype.scalar), widest.type)

        return apply


def widen_factors() -> None:
    """Let `tl.dot` of Triton's interpreter multiply the values of bfloat16."""
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    multiply = InterpreterBuilder.create_dot

    def widened(factor: Any) -> Any:
        if factor.dtype.scalar != tl.bfloat16:
            return factor
        return TensorHandle((factor.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    def create_dot(builder: Any, left: Any, right: Any, *rest: Any) -> Any:
        return multiply(builder, widened(left), widened(right), *rest)

    InterpreterBuilder.create_dot = create_dot


def difference(case: Case) -> float:
    """Return the largest difference of any output, relative to its scale."""
    instance, inputs, start = case.make()
    program = write_triton(instance, case.options)
    functions = load_functions(program.source)
    for function in functions.values():
        function.fn.__globals__["libdevice"] = Libdevice()
    arrays: dict[str, torch.Tensor] = {}
    for tensor, array in zip(instance.inputs, inputs, strict=True):
        dense = torch.from_numpy(np.asarray(array)).to(torch_dtype(tensor.dtype.name))
        memory = torch.zeros(
            1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.strides, strict=True)),
            dtype=dense.dtype,
        )
        view = memory.as_strided(tensor.shape, tensor.strides)
        arrays[tensor.name] = view.copy_(dense)
    for tensor in (*instance.outputs, *instance.temporaries):
        memory = torch.full(tensor.shape, 77, dtype=torch_dtype(tensor.dtype.name))
        if tensor.name in start:
            memory = torch.from_numpy(np.asarray(start[tensor.name])).to(memory.dtype).clone()
        arrays[tensor.name] = memory
    for name, count in program.partials.items():
        arrays[name] = torch.full((count,), 77, dtype=torch_dtype(program.types[name].name))
    for launch in program.launches:
        functions[launch.name][launch.grid](*(arrays[name] for name in launch.arguments))
    wanted = interpret(instance, inputs, start, float64=True)
    worst = 0.0
    for tensor, want in zip(instance.outputs, wanted, strict=True):
        got = arrays[tensor.name].double().numpy()
        want = np.asarray(want, np.float64)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        if want.size:
            scale = max(1.0, float(np.nanmax(np.abs(want))))
            worst = max(worst, float(np.nanmax(np.abs(got - want))) / scale)
    return worst


def torch_dtype(name: str) -> torch.dtype:
    return getattr(torch, name)


def main() -> None:
    assert os.environ.get("TRITON_INTERPRET") == "1"
    widen_factors()
    for name in sys.argv[1:] or CASES:
        line: dict[str, Any] = {"name": name}
        try:
            line["difference"] = difference(CASES[name])
        except Exception:
            line["error"] = traceback.format_exc()[-3000:]
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
