"""As what walked models are captured."""

from __future__ import annotations

from collections import Counter

import pytest

from builder.catalog import parse_line
from builder.walks.workloads import batched, lengthened, tokens_of, vision_line, workload_of

NAMES = [f"library/model_{number}" for number in range(4000)]


def test_workloads_are_as_deployed_whatever_the_models_are_called() -> None:
    workloads = [workload_of(name) for name in NAMES]
    counts = Counter(
        kind
        for each in workloads
        for kind, holds in (
            ("batch 1", each.batch == 1),
            ("dynamic", each.is_dynamic),
            ("half", each.dtype != "float32"),
            ("train", each.mode == "train"),
        )
        if holds
    )
    shares = {kind: count / len(workloads) for kind, count in counts.items()}
    assert shares["batch 1"] <= 0.5
    assert shares["dynamic"] >= 0.3 and shares["half"] >= 0.13 and shares["train"] >= 0.08


def test_language_models_are_more_often_in_bfloat16() -> None:
    halves = [
        sum(workload_of(name, is_language_model=is_one).dtype == "bfloat16" for name in NAMES)
        for is_one in (False, True)
    ]
    assert halves[1] > 3 * halves[0]


@pytest.mark.parametrize("positions", [None, 4, 40, 77, 128, 130, 512, 514, 2048, 131_072])
def test_a_text_fits_its_positions(positions: int | None) -> None:
    for name in NAMES[:200]:
        for is_language_model in (False, True):
            tokens = tokens_of(name, positions, is_language_model=is_language_model)
            assert 4 <= tokens <= (positions or 2048)


def test_a_batch_and_a_length_are_changed_in_all_inputs_or_in_none() -> None:
    inputs = {"input_ids": "ids(1,32; 10, 2000)", "past_key_values": "cache(1,128)"}
    assert batched(inputs, 4) == {
        "input_ids": "ids(4,32; 10, 2000)",
        "past_key_values": "cache(4,128)",
    }
    codebooks = {"input_ids": "ids(4,32; 9)", "attention_mask": "full(1,32; 1)"}
    assert batched(codebooks, 4) == codebooks
    assert lengthened(codebooks, 64) == {
        "input_ids": "ids(4,64; 9)",
        "attention_mask": "full(1,64; 1)",
    }
    picture = {"input_ids": "prompt(1,32; 10, 2000, 7, 16)", "mask": "full(1,32; 1)"}
    assert lengthened(picture, 64) == picture


def test_a_vision_line_is_an_entry_whose_dynamic_batch_is_not_one() -> None:
    for name in NAMES[:100]:
        line = vision_line(name, "timm", "vit", "", {"_0": "normal(1,3,224,224)"})
        entry = parse_line(line)
        assert not entry.dynamic or entry.inputs[0].shape[0] > 1
        assert entry.mode == "eval" or entry.inputs[0].shape[0] > 1
