"""The compiler `tc` on small modules and on graphs of the embedded dataset."""

from __future__ import annotations

import pathlib

import pytest
import torch

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.compilers import make_compiler
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.tensor_comprehensions.compiler import TensorComprehensions

pytest.importorskip("islpy", reason="needs islpy (extra tc)")


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(12, 24), torch.nn.Linear(24, 12)
        self.norm = torch.nn.LayerNorm(12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.second(torch.nn.functional.gelu(self.first(x))))


class Stack(torch.nn.Module):
    """Two equal blocks and an operator that no rule covers between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Block(), Block()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).cumsum(0))


def test_repeated_blocks_are_compiled_once_and_the_rest_is_left_to_eager() -> None:
    torch.manual_seed(0)
    module, x = Stack().eval(), torch.randn(5, 12)
    compiler = make_compiler("tc")
    assert isinstance(compiler, TensorComprehensions)
    compiled = compiler.compile(module, {"x": x})
    for _ in range(2):
        other = torch.randn(5, 12)
        torch.testing.assert_close(compiled(x=other), module(other).detach(), rtol=1e-4, atol=1e-5)
    assert compiler.num_kernels == 2
    # Of the operators of two blocks and `cumsum`, that one alone is left.
    assert compiler.fallback_share is not None
    assert 0 < compiler.fallback_share < 0.15
    assert (
        "left to eager 1 times: aten.cumsum.default: The operator has no rule." in compiler.warnings
    )


def test_further_sizes_share_compiled_code() -> None:
    torch.manual_seed(0)
    module = Block().eval()
    options = {"max_specialised": 1, "compile_timeout_s": 600.0}
    compiler = make_compiler("tc", options=options)
    assert isinstance(compiler, TensorComprehensions)
    compiled = compiler.compile(module, {"x": torch.randn(5, 12)})
    objects = set()
    for size in (5, 8, 31):
        x = torch.randn(size, 12)
        torch.testing.assert_close(compiled(x=x), module(x).detach(), rtol=1e-4, atol=1e-5)
        objects |= {group_kernel.kernel.path for _, group_kernel in compiler.compiled_groups}
        assert compiler.fallback_share == 0
    num_groups = len(compiler.compiled_groups)
    assert len(objects) == 2 * num_groups


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_after_every_operator_as_eager_does(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    module, x = Block().to(dtype).eval(), torch.randn(35, 12).to(dtype)
    compiler = make_compiler("tc")
    assert isinstance(compiler, TensorComprehensions)
    found, expected = compiler.compile(module, {"x": x})(x=x), module(x).detach()
    assert found.dtype == dtype
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(found, expected, rtol=unit, atol=unit * 0.1)
    equal = (found == expected).float().mean().item()
    assert equal > 0.9, "what differs is the order of sums"
    assert compiler.fallback_share == 0


class Writing(torch.nn.Module):
    """Writes to a buffer and to an input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("variance", torch.ones(3))

    def forward(self, x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        norm = torch.nn.functional.batch_norm(x, self.mean, self.variance, training=True)
        result = torch.relu(norm)
        cache[:, 1] = result.sum(0)
        return result * 2


def test_writes_to_inputs_and_buffers_are_kept() -> None:
    module, expected = Writing(), Writing()
    inputs = {"x": torch.randn(8, 3), "cache": torch.zeros(3, 2)}
    compiler = make_compiler("tc")
    compiled = compiler.compile(module, inputs)
    expected.load_state_dict(module.state_dict())
    for _ in range(2):
        x = torch.randn(8, 3)
        mine, theirs = ({"x": x, "cache": torch.ones(3, 2)} for _ in range(2))
        torch.testing.assert_close(compiled(**mine), expected(**theirs))
        torch.testing.assert_close(mine["cache"], theirs["cache"])
        for own, other in zip(module.buffers(), expected.buffers(), strict=True):
            torch.testing.assert_close(own, other)
    assert not any("batch_norm" in each for each in compiler.warnings)


class Strided(torch.nn.Module):
    """Views that only the strides of eager's results admit, and one of memory as it lies."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        turned = x.transpose(0, 1).exp()  # eager keeps the strides of `x`
        sorted_, _ = turned.transpose(0, 1).sort(-1)
        plain = turned.transpose(0, 1).view(-1) if self.training else sorted_.view(-1)
        return plain, turned.as_strided((4, 3), (1, 5)).cumsum(0)


@pytest.mark.parametrize("training", [False, True])
def test_views_of_results_do_not_depend_on_their_strides(training: bool) -> None:
    module, x = Strided().train(training), torch.randn(3, 5)
    compiled = make_compiler("tc").compile(module, {"x": x})
    other = torch.randn(3, 5)
    for mine, theirs in zip(compiled(x=other), module(other), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)


def test_kernels_of_half_precision_can_be_tuned(tmp_path: pathlib.Path) -> None:
    module, x = torch.nn.GELU(), torch.randn(35, 12, dtype=torch.bfloat16)
    options = {"tune_s": 0.5, "cache": str(tmp_path / "tc.parquet")}
    compiler = make_compiler("tc", options=options)
    found = compiler.compile(lambda x: module(x), {"x": x})(x=x)
    assert compiler.fallback_share == 0
    torch.testing.assert_close(found, module(x), rtol=1e-2, atol=1e-3)
    assert (tmp_path / "tc.parquet").is_file()


def test_contractions_can_be_left_to_eager() -> None:
    module, x = Block().eval(), torch.randn(3, 12)
    compiler = make_compiler("tc", options={"contractions": "never", "min_ops": 2})
    torch.testing.assert_close(
        compiler.compile(module, {"x": x})(x=x), module(x).detach(), rtol=1e-4, atol=1e-5
    )
    assert any("Contractions are left to eager" in each for each in compiler.warnings)


def test_an_input_that_is_written_and_returned_has_its_new_value() -> None:
    class Writes(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.add_(1)

    compiled = make_compiler("tc").compile(Writes(), {"x": torch.ones(3)})
    x = torch.zeros(3)
    torch.testing.assert_close(compiled(x=x), torch.ones(3))
    torch.testing.assert_close(x, torch.ones(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["torch/dlrm-small", "torch/unet-small", "torch/gat-cora"])
def test_embedded_graphs_agree_with_eager(name: str) -> None:
    (row,) = select_rows(name, dataset="graphnet")
    sample = Sample.from_row(row)
    module = materialize(sample, weights="parameters")
    compiler = make_compiler("tc")
    compiled = compiler.compile(module, make_inputs(sample, weights="parameters"))
    found = compiled(**make_inputs(sample, weights="parameters"))
    with torch.no_grad():
        expected = module(**make_inputs(sample, weights="parameters"))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert compiler.fallback_share < 0.4
