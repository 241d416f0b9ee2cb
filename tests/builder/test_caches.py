"""A decode step of a language model starts from the cache that the model itself leaves."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="needs the extra `builder`")

import torch

from builder.catalog import parse_line
from builder.worker import capture_entry

SMALL = (
    "hidden_size=32 num_hidden_layers=2 num_attention_heads=2 num_key_value_heads=1 "
    "intermediate_size=64 vocab_size=50"
)
LINE = (
    f"a/decode | nlp | transformers | LlamaForCausalLM | {SMALL} | input_ids=ids(1,1; 50) "
    "past_key_values=cache(1,7) | float32 | eval | |"
)


def test_a_decode_step_takes_keys_and_values_and_gives_them_one_token_longer() -> None:
    (sample,) = capture_entry(parse_line(LINE))
    shapes = [each.value.shape for each in sample.inputs if each.role == "input"]
    assert shapes.count((1, 1, 7, 16)) == 4  # keys and values of two layers
    longer = [op for op in sample.ops if any(v.shape == (1, 1, 8, 16) for v in op.results or ())]
    assert len(longer) >= 4
    drawn = [each.statistics for each in sample.inputs if each.value.shape == (1, 1, 7, 16)]
    stds = [each.std for each in drawn if each is not None and each.std is not None]
    assert len(stds) == 4 and all(0.7 < std < 1.3 for std in stds)
    assert len(set(stds)) == 4
    assert torch.get_default_dtype() is torch.float32
