"""Shallow configs: which layers stay, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra `builder`")

import transformers

from builder.shrinking import MAX_EXPERTS, configs, shrink_config


def test_a_stack_keeps_its_width_and_loses_layers() -> None:
    config: Any = transformers.BertConfig()
    shrink_config(config, 2)
    assert (config.num_hidden_layers, config.hidden_size) == (2, 768)


def test_a_layer_of_each_type_stays() -> None:
    config: Any = transformers.Gemma3TextConfig()
    kinds = set(config.layer_types)
    assert len(kinds) == 2 and len(set(config.layer_types[:2])) == 1
    shrink_config(config, 2)
    assert set(config.layer_types) == kinds
    assert config.num_hidden_layers == len(config.layer_types) == 2


def test_stages_are_capped_and_their_number_stays() -> None:
    config: Any = transformers.SwinConfig()
    assert list(config.depths) == [2, 2, 6, 2]
    shrink_config(config, 1)
    assert list(config.depths) == [1, 1, 1, 1]
    assert config.num_layers == 4  # the stages, whose heads are listed


def test_configs_inside_and_experts_are_reached() -> None:
    config: Any = transformers.CLIPConfig()
    shrink_config(config, 3)
    assert len(list(configs(config))) == 3
    assert config.text_config.num_hidden_layers == config.vision_config.num_hidden_layers == 3
    experts: Any = transformers.Qwen3MoeConfig()
    assert experts.num_experts > MAX_EXPERTS
    shrink_config(experts, 2)
    assert experts.num_experts == MAX_EXPERTS


def test_a_backbone_gives_its_last_layer() -> None:
    config: Any = transformers.Dinov2Config()
    shrink_config(config, 2)
    assert config.stage_names == ["stem", "stage1", "stage2"]
    assert config.out_features == ["stage2"]
