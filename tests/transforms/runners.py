"""How the tests of this folder run samples of each framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.validation.parts import Runner


def runner_of(framework: str) -> Runner:
    """Return what runs samples of `framework` without gradients and compares their outputs."""
    if framework == "torch":
        import torch

        def same(left: Any, right: Any) -> bool:
            return left.dtype == right.dtype and torch.equal(_bits(left), _bits(right))

        def _bits(tensor: Any) -> Any:
            return tensor.detach().resolve_conj().contiguous().flatten().view(torch.uint8)

        return Runner(_building(torch.no_grad), make_inputs, torch.manual_seed, torch.Tensor, same)
    import paddle

    def same_arrays(left: Any, right: Any) -> bool:
        return left.dtype == right.dtype and left.numpy().tobytes() == right.numpy().tobytes()

    return Runner(_building(paddle.no_grad), make_inputs, paddle.seed, paddle.Tensor, same_arrays)


def _building(no_grad: Callable[[], Any]) -> Callable[[Sample], Callable[[Sequence[Any]], Any]]:
    def build(sample: Sample) -> Callable[[Sequence[Any]], Any]:
        built = materialize(sample, allow_unchecked_operators=True)

        def run(values: Sequence[Any]) -> Any:
            with no_grad():
                if sample.framework == "torch":
                    return built(**dict(zip(sample.input_names, values, strict=True)))
                return built(*values)

        return run

    return build
