"""16-bit floats in vector code: read as float32, computed in it, rounded where they are stored."""

from __future__ import annotations

import pytest
import torch

from graphnet_datasets import tensor_comprehensions as tc

pytest.importorskip("islpy", reason="needs islpy (extra tc)")

STATEMENTS = {
    "an expression": ("MN MN", "O(i,j) = {t}(A(i,j) * B(i,j) + exp(A(i,j)))"),
    "a choice": ("MN N", "O(i,j) = A(i,j) > 0 ? {t}(A(i,j) / 3.0) : B(j)"),
    "strides": ("MN NM", "O(i,j) = {t}(A(i,j) + B(j,i))"),
    "every second": ("MN", "O(i,j) = A(i,2*j)"),
    "columns": ("NM", "O(i,j) = {t}(A(j,i))"),
    "a product": ("MK KN", "O(i,j) +=! A(i,k) * B(k,j)"),
    "an epilogue": ("MK KN", "S(i,j) +=! A(i,k) * B(k,j)  O(i,j) = {t}(max(S(i,j), 0) * 0.3)"),
    "a sum of rows": ("MN", "O(i) +=! A(i,j)"),
    "a largest": ("MN", "O(i) max=! A(i,j)"),
    "padding": ("MN", "O(i,j) = (j > 1 ? A(i,j - 2) : 0) + A(i,j)"),
    "two roundings": ("MN", "O(i,j) = {t}({t}(A(i,j) / 7.0) / 3.0)"),
}
UNITS = {"float16": 2**-10, "bfloat16": 2**-7}
SIZES = {"M": 17, "N": 37, "K": 19}


@pytest.mark.parametrize("dtype", sorted(UNITS))
@pytest.mark.parametrize("name", STATEMENTS)
def test_vectors_of_stored_halves_are_correct(name: str, dtype: str) -> None:
    shapes, statement = STATEMENTS[name]
    parameters = ", ".join(
        f"{dtype}({', '.join(dims)}) {each}"
        for dims, each in zip(shapes.split(), "AB", strict=False)
    )
    body = statement.format(t=dtype)
    definition = tc.define(f"def f({parameters}) -> (O) {{ {body} }}")
    generator = torch.Generator().manual_seed(0)
    inputs = [
        torch.randn([SIZES[each] for each in dims], generator=generator).to(getattr(torch, dtype))
        for dims in shapes.split()
    ]
    kernel = definition.compile("f", *inputs)
    assert "vf_" in kernel.source.split("void tc_kernel")[1], "it is vector code"
    found, wanted = definition.f(*inputs), definition.interpret("f", *inputs)
    assert found.dtype == getattr(torch, dtype)
    # A sum in another order may round to the neighbour.
    torch.testing.assert_close(found, wanted.to(found.dtype), rtol=UNITS[dtype], atol=1e-6)


def test_special_values_survive_the_way_through_vectors() -> None:
    values = [float("nan"), float("inf"), -float("inf"), -0.0, 1e-8, 65504.0, 3.4e38, 1.0]
    x = torch.tensor(values * 5)
    for dtype in (torch.float16, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        narrow = tc.define(f"def f(float(N) A) -> (O) {{ O(i) = {name}(A(i)) }}")
        wide = tc.define(f"def f({name}(N) A) -> (O) {{ O(i) = float32(A(i)) * 1.0 }}")
        stored = narrow.f(x)
        torch.testing.assert_close(stored, x.to(dtype), rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(
            wide.f(stored), x.to(dtype).float(), rtol=0, atol=0, equal_nan=True
        )
