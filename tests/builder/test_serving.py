"""Steps of serving compute the logits of a call without a cache."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="needs the extra `builder`")

import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM

from builder.catalog import parse_line
from builder.serving import Step
from builder.worker import capture_entry

SIZES = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 64, "head_dim": 8,
}  # fmt: skip
TOKENS = torch.arange(2 * 12).view(2, 12) % 60 + 2


def step_of(model: torch.nn.Module, sizes: tuple[int, int], is_paged: bool) -> Step:
    """Return a step with a cache of zeros."""
    step = Step(model, sizes, is_paged, torch.float32).eval()
    for name, buffer in list(step.named_buffers(recurse=False)):
        setattr(step, name, torch.zeros(buffer.shape))
    return step


@pytest.mark.parametrize("is_sliding", [False, True])
def test_steps_compute_the_logits_of_a_call_without_a_cache(is_sliding: bool) -> None:
    torch.manual_seed(0)
    if is_sliding:
        kinds = ["sliding_attention", "full_attention"]
        config = Gemma3TextConfig(**SIZES, sliding_window=5, layer_types=kinds)
        model = Gemma3ForCausalLM(config).eval()
    else:
        model = LlamaForCausalLM(LlamaConfig(**SIZES)).eval()
    static, paged = step_of(model, (2, 16), False), step_of(model, (8, 4), True)
    blocks = torch.tensor([[5, 0, 3], [2, 7, 1]])
    with torch.no_grad():
        whole = model(TOKENS).logits
        for start, end in ((0, 6), (6, 11), (11, 12)):
            tokens, positions = TOKENS[:, start:end], torch.arange(start, end)
            expected = whole[:, end - 1 : end]
            torch.testing.assert_close(static(tokens, positions), expected)
            logits = paged(tokens, positions.expand(2, -1), blocks)
            torch.testing.assert_close(logits, expected)


def test_a_catalog_line_adds_a_cache_without_elements() -> None:
    sizes = " ".join(f"{name}={size}" for name, size in SIZES.items())
    entry = parse_line(
        f"transformers/llama-decode | nlp | transformers | LlamaForCausalLM | {sizes} "
        "paged_cache=(2048,16) | input_ids=ids(2,1; 60) positions=ids(2,1; 8192, 16384) "
        "block_tables=count(2,1024) | bfloat16 | eval | input_ids.0 positions.0 block_tables.0 | "
    )
    (sample,) = capture_entry(entry)
    caches = [item for item in sample.inputs if "buffers_keys" in item.source_name]
    assert [(item.role, item.value.shape) for item in caches] == [("buffer", (2048, 16, 2, 8))] * 2
    assert [item.statistics and item.statistics.std for item in caches] == [1.0, 1.0]
    assert sum(op.target == "torch.Tensor.index_copy_" for op in sample.ops) == 4
