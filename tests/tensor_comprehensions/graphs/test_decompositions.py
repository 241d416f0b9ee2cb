"""Operators that are taken apart compute what they did as a whole."""

from __future__ import annotations

import pytest
import torch

from graphnet_datasets.tensor_comprehensions.graphs.capturing import capture_graph
from graphnet_datasets.tensor_comprehensions.graphs.compiling import plan_graph
from graphnet_datasets.tensor_comprehensions.graphs.decompositions import encoder_layer

pytest.importorskip("islpy", reason="needs islpy (extra tc)")


def arguments(*, use_gelu: bool, norm_first: bool) -> tuple:
    """Return the arguments of the fused layer of torch."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * 0.3

    shapes = [(8,), (8,), (8,), (8,), (12, 8), (12,), (8, 12), (8,)]
    weights = [random(24, 8), random(24), random(8, 8), random(8)]
    rest = [random(*each) for each in shapes]
    return (random(2, 5, 8), 8, 2, *weights, use_gelu, norm_first, 1e-5, *rest)


@pytest.mark.parametrize("use_gelu", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_the_encoder_layer_is_the_sum_of_its_parts(use_gelu: bool, norm_first: bool) -> None:
    given = arguments(use_gelu=use_gelu, norm_first=norm_first)
    with torch.no_grad():
        whole = torch._transformer_encoder_layer_fwd(*given)
    torch.testing.assert_close(encoder_layer(*given), whole, rtol=1e-5, atol=1e-5)


def test_a_graph_of_it_is_covered_and_a_masked_one_is_left() -> None:
    given = arguments(use_gelu=True, norm_first=False)
    mask = torch.zeros(2, 5, dtype=torch.bool)

    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch._transformer_encoder_layer_fwd(x, *given[1:])

    class Masked(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch._transformer_encoder_layer_fwd(x, *given[1:], mask, 1)

    covered, left = (
        plan_graph(capture_graph("tc", module, {"x": given[0]}).module.graph)
        for module in (Layer(), Masked())
    )
    assert covered.fallback_share == 0
    assert left.fallback_share == 1
