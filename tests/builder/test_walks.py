"""What a walk over transformers finds out about a class, and the exceptions to it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="needs the extra `builder`")

import transformers

from builder.catalog import CatalogError, parse_line, read_catalog
from builder.sources import BUILDER, FILES
from builder.walks import overrides
from builder.walks.tensors import inputs_of
from builder.walks.transformers import Walked, _line, _task
from builder.walks.workloads import Workload


def inputs(name: str) -> dict[str, str]:
    model_class = getattr(transformers, name)
    parameters = inspect.signature(model_class.forward).parameters
    return inputs_of(
        frozenset(parameters),
        frozenset(),
        model_class.main_input_name,
        name,
        model_class.config_class(),
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "BertForMaskedLM",
            {"input_ids": "ids(1,256; 10, 2000)", "attention_mask": "full(1,256; 1)"},
        ),
        (
            "BertForMultipleChoice",
            {"input_ids": "ids(1,4,256; 10, 2000)", "attention_mask": "full(1,4,256; 1)"},
        ),
        ("LlamaForCausalLM", {"input_ids": "ids(1,1024; 10, 2000)"}),
        ("ViTModel", {"pixel_values": "normal(1,3,224,224)"}),
        ("Wav2Vec2Model", {"input_values": "normal(1,160000)"}),
        (
            "WhisperModel",
            {"input_features": "normal(1,80,3000)", "decoder_input_ids": "ids(1,64; 10, 2000)"},
        ),
        (
            "CLIPModel",
            {
                "input_ids": "ids(1,77; 10, 2000)",
                "attention_mask": "full(1,77; 1)",
                "pixel_values": "normal(1,3,224,224)",
            },
        ),
    ],
)
def test_inputs_follow_from_the_signature_and_the_config(
    name: str, expected: dict[str, str]
) -> None:
    found = inputs(name)
    assert found == expected
    line = " ".join(f"{key}={text}" for key, text in found.items())
    entry = parse_line(f"a/b | nlp | transformers | {name} | | {line} | float32 | eval | |")
    assert [spec.name for spec in entry.inputs] == list(expected)


def test_a_required_parameter_that_nothing_is_known_about_means_no_inputs() -> None:
    config = transformers.BertConfig()
    names = frozenset({"input_ids", "secret"})
    assert inputs_of(names, frozenset({"secret"}), "input_ids", "X", config) == {}


@pytest.mark.parametrize("source", ["transformers", "geometric"])
def test_every_exception_has_a_reason(source: str) -> None:
    found = overrides.read_overrides(source)
    assert found and all(each.reason for each in found.values())


def test_an_exception_without_a_reason_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overrides, "WALKS", tmp_path)
    (tmp_path / "x.txt").write_text("# a comment\nmodel | - | |\n")
    with pytest.raises(CatalogError) as caught:
        overrides.read_overrides("x")
    expected = f"{tmp_path}/x.txt:2 is not `model | overrides | inputs | reason`."
    assert str(caught.value) == expected


def test_the_files_of_all_sources_follow_the_format() -> None:
    names = [
        entry.name
        for files in FILES.values()
        for file in files
        for entry in read_catalog(BUILDER / file)
    ]
    assert len(names) == len(set(names)) > 270


def test_a_line_for_a_convolution_takes_the_place_of_the_walks() -> None:
    pytest.importorskip("torch_geometric", reason="needs the extra `catalogs`")
    from builder.walks import geometric

    lines = {parse_line(line).name: parse_line(line) for line in geometric.walk()}
    assert lines["torch_geometric/DNAConv"].overrides == {"channels": 32}
    assert lines["torch_geometric/DNAConv"].inputs[0].shape == (100, 3, 32)
    assert "torch_geometric/WLConv" not in lines


@pytest.mark.parametrize(
    ("name", "workload", "expected"),
    [
        ("LlamaForSequenceClassification", Workload(8), {"pad_token_id": 0}),
        ("LlamaForSequenceClassification", Workload(1, is_dynamic=True), {"pad_token_id": 0}),
        ("LlamaForSequenceClassification", Workload(1), {}),
        ("Qwen3_5ForSequenceClassification", Workload(8), {"text_config.pad_token_id": 0}),
        ("BertForSequenceClassification", Workload(8), {}),
        ("LlamaForCausalLM", Workload(8), {}),
    ],
)
def test_a_classifier_of_several_texts_has_a_padding_token(
    name: str, workload: Workload, expected: dict[str, int]
) -> None:
    config = getattr(transformers, name).config_class()
    walked = Walked(name, (), "", frozenset(), frozenset(), "input_ids", config)
    line = _line(walked, "", {"input_ids": "ids(1,8; 0, 9)"}, workload)
    assert parse_line(line).overrides == expected


@pytest.mark.parametrize(
    ("inputs", "task"),
    [
        ({"input_ids": "ids(1,8; 9)", "pixel_values": "normal(1,3,8,8)"}, "multimodal"),
        ({"input_ids": "ids(1,8; 9)", "attention_mask": "full(1,8; 1)"}, "nlp"),
        ({"input_ids": "ids(1,1; 9)", "past_key_values": "cache(1,128)"}, "nlp"),
        ({"input_ids": "ids(1,8; 9)", "bbox": "boxes(1,8,4; 9)"}, "multimodal"),
    ],
)
def test_the_task_follows_from_the_inputs(inputs: dict[str, str], task: str) -> None:
    mappings = ("MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",)
    walked = Walked("A", mappings, "a", frozenset(), frozenset(), "input_ids", None)
    assert _task(walked, inputs) == task


def test_a_grid_of_patches_has_constant_sizes() -> None:
    inputs = {"x": "patches(1,24,5)", "grid": "grid(1,3; 1, 4, 6)"}
    config = transformers.BertConfig()
    walked = Walked("A", (), "a", frozenset(), frozenset(), "input_ids", config)
    entry = parse_line(_line(walked, "", inputs, Workload(4, is_dynamic=True)))
    assert (entry.name, entry.dynamic) == ("transformers/A-b4", ())
    assert [spec.shape for spec in entry.inputs] == [(4, 24, 5), (4, 3)]


def test_a_step_has_as_many_texts_as_its_cache() -> None:
    inputs = {"input_ids": "ids(1,1; 9)", "past_key_values": "cache(1,128)"}
    walked = Walked("A", (), "a", frozenset(), frozenset(), "input_ids", transformers.BertConfig())
    entry = parse_line(_line(walked, "", inputs, Workload(4, is_dynamic=True), "-decode"))
    assert (entry.name, entry.dynamic) == ("transformers/A-decode-b4", ())
