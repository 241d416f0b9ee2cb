"""From a catalog entry to a module without weights."""

from __future__ import annotations

import copy
from typing import Any

import torch
import transformers

from graphnet_datasets import without_weights

from .architectures import ARCHITECTURES
from .catalog import CatalogError, Entry

TORCH_SOURCE = "graphnet-datasets/builder"
TRANSFORMERS_SOURCE = "huggingface/transformers"


def build_model(entry: Entry) -> torch.nn.Module:
    """Return the entry's model on the meta device, in its mode and dtype; buffers have elements.

    Raises:
        CatalogError: the builder is unknown or does not take the overrides.
    """
    torch.manual_seed(0)  # buffers that are drawn at random are drawn alike
    try:
        with without_weights():
            model = _BUILDERS[entry.library](entry)
    except TypeError as error:
        raise CatalogError(f"`{entry.name}` cannot be built: {error}") from error
    model.train(entry.mode == "train")
    return model.to(getattr(torch, entry.dtype))


def source_of(entry: Entry) -> tuple[str, str]:
    """Return where the model's code comes from and in which version."""
    if entry.library == "transformers":
        return TRANSFORMERS_SOURCE, f"transformers {transformers.__version__}"
    return TORCH_SOURCE, ""


def _from_torch(entry: Entry) -> torch.nn.Module:
    if entry.builder not in ARCHITECTURES:
        raise CatalogError(
            f"`{entry.name}` names the architecture `{entry.builder}` "
            f"(accepted: {', '.join(sorted(ARCHITECTURES))})."
        )
    return ARCHITECTURES[entry.builder](**entry.overrides)


def _from_transformers(entry: Entry) -> torch.nn.Module:
    model_class = getattr(transformers, entry.builder, None)
    if not isinstance(model_class, type) or not issubclass(
        model_class, transformers.PreTrainedModel
    ):
        raise CatalogError(f"`{entry.name}` names `{entry.builder}`, which is no model class.")
    config_class: Any = model_class.config_class
    config = config_class(**_nested(entry.overrides))
    return model_class(config)


def _nested(overrides: dict[str, Any]) -> dict[str, Any]:
    """Turn dotted keys into nested dictionaries, which configs of several models take."""
    nested: dict[str, Any] = {}
    for key, value in overrides.items():
        *parents, last = key.split(".")
        target = nested
        for parent in parents:
            target = target.setdefault(parent, {})
        target[last] = copy.deepcopy(value)
    return nested


_BUILDERS = {"torch": _from_torch, "transformers": _from_transformers}
