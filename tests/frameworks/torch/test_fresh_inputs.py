"""Other calls of embedded language models: indices in bounds, masks that leave something to see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.inputs import find_roles, make_array
from tests.embedded import samples

MODELS = (
    "transformers/bert-tiny", "transformers/gpt2-nano", "transformers/llama-nano",
    "transformers/layoutlm-nano", "torch/text-cnn-small", "transformers/flava-nano",
)  # fmt: skip


@pytest.fixture(scope="module")
def models() -> dict[str, Sample]:
    return samples(MODELS)


class _Watching(torch.fx.Interpreter):
    """Looks at what softmax and attention are given."""

    num_rows = 0

    def run_node(self, n: torch.fx.Node) -> Any:
        name = getattr(n.target, "__name__", str(n.target))
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if name == "softmax":
            self._check(args[0].double() > -1e4)
        elif name == "scaled_dot_product_attention":
            mask = args[3] if len(args) > 3 else kwargs.get("attn_mask")
            if mask is not None:
                self._check(mask if mask.dtype == torch.bool else mask.double() > -1e4)
        return super().run_node(n)

    def _check(self, is_seen: torch.Tensor) -> None:
        assert is_seen.any(-1).all(), "a row of attention sees nothing"
        self.num_rows += is_seen[..., 0].numel()


@pytest.mark.parametrize("name", MODELS)
def test_no_index_is_out_of_range_in_a_thousand_seeds(models: dict[str, Sample], name: str) -> None:
    sample = models[name]
    roles = find_roles(sample)
    assert "tokens" in {role.kind for role in roles.values()}
    for index, role in roles.items():
        drawn = np.stack([make_array(sample, index, seed, "fresh") for seed in range(1000)])
        if role.kind == "mask":
            assert set(np.unique(drawn)) <= {0, 1}
            assert (drawn.sum(-1) > 0).all()
        elif role.low is not None and role.high is not None:
            assert role.low <= drawn.min() <= drawn.max() <= role.high
        if role.kind == "tokens":
            assert len({each.tobytes() for each in drawn}) == 1000


@pytest.mark.parametrize("name", MODELS)
def test_models_run_on_other_inputs_and_attend_to_something(
    models: dict[str, Sample], name: str
) -> None:
    module = materialize(models[name])
    seen = []
    for seed in range(1, 5):
        watching = _Watching(module)
        with torch.no_grad():
            outputs = watching.run(*make_inputs(models[name], seed, "fresh").values())
        assert watching.num_rows or name == "torch/text-cnn-small"
        leaves = [each for each in torch.utils._pytree.tree_leaves(outputs)
                  if isinstance(each, torch.Tensor) and each.is_floating_point()]  # fmt: skip
        assert leaves
        assert all(torch.isfinite(each).all() for each in leaves)
        seen.append(leaves[0])
    assert not any(torch.equal(seen[0], other) for other in seen[1:])
