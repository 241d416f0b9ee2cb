"""Published sizes and released checkpoints that replace unpublished default configs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers", reason="needs the extra `builder`")

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from builder.catalog import CatalogError, parse_overrides
from builder.walks.sizes import read_checkpoints, replaced

CHECKPOINTS = read_checkpoints()


@pytest.mark.parametrize("model_type", CHECKPOINTS)
def test_configs_keep_the_overrides_of_checkpoints(model_type: str) -> None:
    overrides = parse_overrides(CHECKPOINTS[model_type])
    config = CONFIG_MAPPING[model_type](**overrides)
    assert {name: getattr(config, name) for name in overrides} == overrides


@pytest.mark.parametrize(
    ("name", "model_type", "num_params"),
    [
        ("BloomForCausalLM", "bloom", 559_214_592),
        ("Qwen3ForCausalLM", "qwen3", 8_190_735_360),
        ("Qwen3MoeForCausalLM", "qwen3_moe", 30_532_122_624),
    ],
)
def test_checkpoints_have_their_published_number_of_parameters(
    name: str, model_type: str, num_params: int
) -> None:
    config = CONFIG_MAPPING[model_type](**parse_overrides(CHECKPOINTS[model_type]))
    with torch.device("meta"):
        model = getattr(transformers, name)(config)
    model.tie_weights()
    assert sum(parameter.numel() for parameter in model.parameters()) == num_params


def test_later_overrides_take_precedence() -> None:
    assert replaced("", "") == ""
    assert replaced("a=1", "") == "a=1"
    assert replaced("", "a.b=1") == "a.b=1"
    assert replaced("a=[1, 2] b=2", "a=3") == "b=2 a=3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bert | base | a=1\n", "must be `type of model | checkpoint | overrides | source`"),
        ("bert | a | b=1 | c\nbert | a | b=2 | c\n", "has two lines for `bert`"),
    ],
)
def test_lines_that_are_no_checkpoints_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "checkpoints.txt"
    path.write_text(text)
    with pytest.raises(CatalogError) as error:
        read_checkpoints(path)
    assert message in str(error.value)
