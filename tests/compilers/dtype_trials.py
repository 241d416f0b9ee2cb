"""One arm over every dtype: a process that prints a JSON object per dtype.

python -m tests.compilers.dtype_trials iree
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from graphnet_datasets.compilers import make_compiler
from graphnet_datasets.errors import CompilerError

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
)
NO_EMPTY_COMPLEX = ("inductor", "aotinductor")
"""Arms that do not compile a sum of empty complex tensors, because torch fails in a lowering."""


class OneOperator(torch.nn.Module):
    """Return each input as it is, and the result of one operator on it."""

    def forward(self, **inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = []
        for value in inputs.values():
            is_bool = value.dtype is torch.bool
            outputs += [value, value.logical_not() if is_bool else value + value]
        return tuple(outputs)


class Named(torch.nn.Module):
    """`OneOperator` with named arguments, as exporters want them."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = OneOperator()

    def forward(
        self, vector: torch.Tensor, scalar: torch.Tensor, empty: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return self.inner(vector=vector, scalar=scalar, empty=empty)


def make_inputs(arm: str, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Return inputs whose doubles fit their dtype; those of uint8 need its highest bit."""
    num_in_last = 2 if dtype.is_complex and arm in NO_EMPTY_COMPLEX else 0
    largest = 100 if dtype is torch.uint8 else 50
    values = torch.tensor([largest, 0, 1])
    if dtype.is_complex:
        values = values * (1 + 2j)
    values = values.to(dtype)
    return {"vector": values, "scalar": values[0].clone(), "empty": values[:num_in_last].clone()}


def find_difference(expected: Any, actual: Any) -> str:
    """Return in what outputs differ, "" where they are equal."""
    if len(expected) != len(actual):
        return f"{len(actual)} outputs"
    for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
        if (left.dtype, left.shape) != (right.dtype, right.shape):
            return f"output {index} is {right.dtype}{list(right.shape)}"
        if not torch.equal(left, right):
            return f"output {index} is {right.tolist()}, not {left.tolist()}"
    return ""


def try_dtypes(arm: str) -> Iterator[dict[str, str]]:
    """Yield for each dtype whether the arm agrees with eager, refuses it, or is at fault."""
    for name in DTYPES:
        module, inputs = Named().eval(), make_inputs(arm, getattr(torch, name))
        expected = module(**inputs)
        trial = {"dtype": name, "outcome": "ok", "message": ""}
        try:
            compiled = make_compiler(arm, "torch", {}).compile(module, inputs)
        except CompilerError as error:
            yield trial | {"outcome": "refused", "message": str(error)[:200]}
            continue
        except Exception as error:  # whatever the tool behind the arm raises
            message = f"{type(error).__name__}: {error}"[:200]
            yield trial | {"outcome": "failed while compiling", "message": message}
            continue
        try:
            difference = find_difference(
                expected, compiled(**make_inputs(arm, getattr(torch, name)))
            )
        except Exception as error:
            message = f"{type(error).__name__}: {error}"[:200]
            yield trial | {"outcome": "failed when called", "message": message}
            continue
        yield trial | ({"outcome": "differs", "message": difference} if difference else {})


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    for trial in try_dtypes(sys.argv[1]):
        sys.stdout.write(f"{json.dumps(trial)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
