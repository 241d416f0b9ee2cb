"""Models of transformers: a model class and overrides of its config.

Three overrides are not attributes of a config: `stack_depth` limits every stack of layers to this
depth (`builder.shrinking`), and `static_cache=(batch,tokens)` or `paged_cache=(blocks,tokens)` adds
a cache to the model (`builder.serving`).
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from ..catalog import CatalogError, Entry
from ..shrinking import shrink_config
from . import torchaudio
from .torchvision import declare_operators


def preload() -> None:
    """Import the modules that all models use, which include torchvision and torchaudio."""
    declare_operators()
    torchaudio.preload_if_installed()
    import transformers
    from transformers import modeling_utils  # noqa: F401

    transformers.utils.logging.set_verbosity_error()


def build(entry: Entry) -> torch.nn.Module:
    """Return a model of the named class with the default config, overridden."""
    import transformers

    model_class = getattr(transformers, entry.builder, None)
    if not isinstance(model_class, type) or not issubclass(
        model_class, transformers.PreTrainedModel
    ):
        raise CatalogError(f"`{entry.name}` names `{entry.builder}`, which is not a model class.")
    overrides = dict(entry.overrides)
    depth = overrides.pop("stack_depth", None)
    static, paged = (overrides.pop(name, None) for name in ("static_cache", "paged_cache"))
    config_class: Any = model_class.config_class
    config = config_class(**_nested(overrides))
    if depth is not None:
        shrink_config(config, depth)
    model = model_class(config)
    if static is None and paged is None:
        return model
    from ..serving import Step

    dtype = getattr(torch, entry.dtype)
    return Step(model, static or paged, is_paged=static is None, dtype=dtype)


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
