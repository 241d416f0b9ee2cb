"""Keywords of torch's own schemas and signatures, and no others."""

from __future__ import annotations

import pytest

from graphnet_datasets.frameworks.torch.operators import lookup
from graphnet_datasets.frameworks.torch.operators.schema import keywords_of


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("torch.conv2d", {"input", "weight", "bias", "stride", "padding", "dilation", "groups"}),
        ("torch.nn.functional.dropout", {"input", "p", "training", "inplace"}),
        ("torch.nn.functional.scaled_dot_product_attention", {"is_causal", "scale", "enable_gqa"}),
        ("torch.nn.functional.max_pool2d", {"kernel_size", "ceil_mode", "return_indices"}),
        ("torch.nn.functional.multi_head_attention_forward", {"need_weights", "is_causal"}),
        ("torch.Tensor.to", {"dtype", "device", "copy", "non_blocking", "memory_format"}),
        ("torch.Tensor.sum", {"dim", "keepdim", "dtype", "axis", "keepdims"}),
        ("torch.Tensor.float", {"memory_format"}),
        ("torch.tensor", {"data", "dtype", "device", "requires_grad"}),
        ("torch.arange", {"start", "end", "step", "dtype", "device"}),
        ("torch.linalg.vector_norm", {"ord", "dim", "keepdim"}),
        ("torch.fft.fftn", {"s", "dim", "norm"}),
        ("torch.nonzero", {"input", "as_tuple"}),
        ("torch.Tensor.nonzero", {"as_tuple"}),
        ("torch.unique", {"return_inverse", "dim"}),
        ("torch.ops.aten.add.Tensor", {"alpha"}),
        ("torch.ops.aten.index_put_", {"accumulate"}),
    ],
)
def test_keywords_that_torch_takes_are_known(name: str, keywords: set[str]) -> None:
    assert keywords <= keywords_of(lookup(name))


@pytest.mark.parametrize("name", ["operator.add", "math.sqrt", "builtins.max", "torch.Tensor.T"])
def test_pythons_operators_and_attributes_take_none(name: str) -> None:
    assert keywords_of(lookup(name)) == frozenset()


def test_an_overload_takes_its_own_arguments_alone() -> None:
    assert keywords_of(lookup("torch.ops.aten.add.Tensor")) == {"self", "other", "alpha"}
