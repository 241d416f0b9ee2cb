"""Shallow copies of the default configs of transformers: real widths, few layers.

Parameters take no memory, so width is free. The time of a capture grows with depth, but the family
does not depend on it. If the layers of a stack differ, one layer of each type is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DEPTHS = (
    "num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers",
    "num_encoder_layers", "num_decoder_layers", "encoder_num_hidden_layers",
    "decoder_num_hidden_layers", "depth", "conf_num_hidden_layers",
)  # fmt: skip
"""Attributes of configs that count the layers of one stack."""

STAGES = ("depths", "stage_num_blocks", "blocks_per_stage", "layer_depths")
"""Attributes of configs that count the layers of each stage."""

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
"""Attributes of configs that count the experts of a layer."""

MAX_EXPERTS = 16
"""Maximum number of experts: they share one tensor, which is allocated before it moves to meta."""

_MAX_KINDS = 6


def shrink_config(config: Any, depth: int) -> None:
    """Limit every stack of `config` and of nested configs to `depth` layers, in place.

    A stack whose layers have different types keeps up to six layers, and a stack whose deeper
    layers the config refers to by index keeps all layers.
    """
    for subconfig in configs(config):
        for name in DEPTHS:
            layers = vars(subconfig).get(name)
            is_deep = isinstance(layers, int) and not isinstance(layers, bool) and layers > depth
            is_staged = any(_length(vars(subconfig).get(stages)) == layers for stages in STAGES)
            if is_deep and not is_staged:
                _shrink_stack(subconfig, name, layers, depth)
        for name in STAGES:
            stages = vars(subconfig).get(name)
            if isinstance(stages, list | tuple) and all(isinstance(n, int) for n in stages):
                setattr(subconfig, name, type(stages)(min(n, depth) for n in stages))
        for name in EXPERTS:
            experts = vars(subconfig).get(name)
            if isinstance(experts, int) and experts > MAX_EXPERTS:
                setattr(subconfig, name, MAX_EXPERTS)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list | tuple) else 0


def _shrink_stack(config: Any, name: str, layers: int, depth: int) -> None:
    attributes = vars(config)
    per_layer = {
        key: value
        for key, value in attributes.items()
        if isinstance(value, list) and len(value) == layers and key not in STAGES
    }
    indices = _kept([value for value in per_layer.values() if _is_typed(value)], layers, depth)
    shallow = len(indices)
    if _points_deeper(config, per_layer, shallow, layers):
        return
    for key, value in per_layer.items():
        setattr(config, key, [value[position] for position in indices])
    stages = attributes.get("stage_names")
    # The layers are the stages of a backbone.
    if isinstance(stages, list) and len(stages) == layers + 1:
        config.stage_names = stages[: shallow + 1]
        config._out_features, config._out_indices = [stages[shallow]], [shallow]
    setattr(config, name, shallow)


def _is_typed(values: list[Any]) -> bool:
    return all(isinstance(value, str | int | bool) for value in values)


def _kept(typed: list[list[Any]], layers: int, depth: int) -> list[int]:
    """Return the positions of the first layer of each type, and at least `depth` positions."""
    seen: set[tuple[str, ...]] = set()
    indices: list[int] = []
    for position, kinds in enumerate(zip(*typed, strict=True) if typed else ()):
        kind = tuple(map(str, kinds))
        if kind not in seen and len(indices) < _MAX_KINDS:
            seen.add(kind)
            indices.append(position)
    fill = (position for position in range(layers) if position not in indices)
    while len(indices) < depth:
        indices.append(next(fill))
    return sorted(indices)


def _points_deeper(config: Any, per_layer: dict[str, Any], shallow: int, layers: int) -> bool:
    for key, value in vars(config).items():
        if key in per_layer or key.startswith("_") or not _is_index(key):
            continue
        if isinstance(value, int) and "layers" in key:  # a number of layers, not an index
            continue
        indices = value if isinstance(value, list | tuple) else [value]
        if any(
            isinstance(index, int) and not isinstance(index, bool) and shallow <= index <= layers
            for index in indices
        ):
            return True
    return False


def _is_index(name: str) -> bool:
    return any(part in name for part in ("indic", "indexes", "idx", "_layers", "layer_ids")) and (
        name not in DEPTHS
    )


def configs(config: Any) -> Iterator[Any]:
    """Yield a config and all nested configs."""
    from transformers import PreTrainedConfig

    yield config
    for value in list(vars(config).values()):
        if isinstance(value, PreTrainedConfig):
            yield from configs(value)
