"""Labels are compared with the inputs that a graph reads."""

from __future__ import annotations

from typing import Any

import pytest

from builder.modalities import Mislabelled, is_supported, mislabelled, modalities

IDS = ("L_input_ids_", "int64", (1, 8))
PIXELS = ("L_pixel_values_", "float32", (1, 3, 32, 32))
TEXT, IMAGE = frozenset({"text"}), frozenset({"image"})


def row(*inputs: tuple[str, str, tuple[int, ...]], **columns: Any) -> dict[str, Any]:
    return {
        "id": "a",
        "task": "nlp",
        "subtask": None,
        "parent_id": "",
        "inputs": [
            {"role": "input", "source_name": name, "dtype": dtype, "shape": list(shape)}
            for name, dtype, shape in inputs
        ],
        "ops": [],
        **columns,
    }


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (IDS, {"text"}),
        (PIXELS, {"image"}),
        (("L_input_features_", "float32", (1, 80, 3000)), {"audio"}),
        (("L_bbox_", "int64", (1, 8, 4)), {"layout"}),
        (("L_x_", "float32", (1, 1, 64, 64)), {"image", "audio"}),
        (("L_x_", "float32", (1, 16000)), {"image", "audio", "text"}),
    ],
)
def test_kinds_follow_from_names_and_shapes(
    value: tuple[str, str, tuple[int, ...]], kinds: set[str]
) -> None:
    assert modalities(row(value)) == [kinds]


def test_masks_and_positions_are_no_data() -> None:
    assert modalities(row(("L_attention_mask_", "int64", (1, 8)), ("L_t_", "int64", (1,)))) == []


def test_unnamed_tokens_reach_an_embedding() -> None:
    ops = [
        {"target": "torch.Tensor.view", "operands": [0], "results": [{"dtype": "int64"}]},
        {"target": "torch.nn.functional.embedding", "operands": [1], "results": [{}]},
    ]
    tokens = ("", "int64", (1, 8))
    assert modalities(row(tokens, ops=ops)) == [TEXT]
    assert modalities(row(tokens, ops=ops[:1])) == []


def test_different_inputs_support_different_needs() -> None:
    assert is_supported(("image", "text"), [TEXT, IMAGE])
    assert not is_supported(("image", "text"), [frozenset({"image", "text"})])
    assert is_supported((), [])


def test_labels_without_their_inputs_are_reported() -> None:
    text_alone = row(IDS, task="multimodal", subtask="image-text-to-text")
    assert list(mislabelled([text_alone])) == [
        Mislabelled("a", "multimodal", ("two modalities",), (TEXT,)),
        Mislabelled("a", "image-text-to-text", ("image", "text"), (TEXT,)),
    ]
    assert not list(mislabelled([row(IDS, PIXELS, task="multimodal", subtask="captioning")]))
    assert not list(mislabelled([{**text_alone, "parent_id": "b"}]))


def test_encoder_decoders_read_two_texts() -> None:
    decoder = ("L_decoder_input_ids_", "int64", (1, 8))
    assert not list(mislabelled([row(IDS, decoder, subtask="seq2seq-lm")]))
    (record,) = mislabelled([row(IDS, subtask="seq2seq-lm")])
    assert record.label == "seq2seq-lm"
