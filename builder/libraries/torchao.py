"""Models of other libraries with linear layers quantised by torchao: `library.builder`.

The override `scheme` is a key of `SCHEMES`. A quantised weight is a tensor of several plain
tensors; these become the parameters, and an export contains the plain operators on them.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._inductor.decomposition import decompositions

from ..catalog import CatalogError, Entry
from .imports import optional

GROUP = 32
"""Elements of a 4-bit weight with a common scale."""

INT4: torch.dtype = vars(torch)["int4"]
"""A dtype that torch's annotations lack."""

SCHEMES: Mapping[str, Callable[[Any], Any]] = {
    "int8-weight-only": lambda q: q.Int8WeightOnlyConfig(),
    "int8-dynamic": lambda q: q.Int8DynamicActivationInt8WeightConfig(),
    "int4-weight-only": lambda q: q.IntxWeightOnlyConfig(
        weight_dtype=INT4, granularity=q.PerGroup(GROUP)
    ),
    "int8-dynamic-int4": lambda q: q.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=INT4, weight_granularity=q.PerGroup(GROUP)
    ),
    "float8-weight-only": lambda q: q.Float8WeightOnlyConfig(),
}
"""Schemes of quantisation: a function from `torchao.quantization` to a config of it."""


def preload() -> None:
    """Import torchao, and replace its operators that stay whole in exports by their functions."""
    optional("torchao.quantization")
    modules = [module for name, module in sys.modules.items() if name.startswith("torchao.")]
    for module in modules:
        for name, value in list(vars(module).items()):
            if str(getattr(value, "_qualified_op_name", "")).startswith("torchao::"):
                setattr(module, name, decompositions.get(value.default, value))


def build(entry: Entry) -> torch.nn.Module:
    """Return the named model of another library, in the entry's dtype, with quantised weights.

    Raises:
        CatalogError: there is no such library or scheme.
    """
    from . import LIBRARIES

    overrides = dict(entry.overrides)
    scheme = overrides.pop("scheme", None)
    library, _, builder = entry.builder.partition(".")
    if library not in LIBRARIES or scheme not in SCHEMES:
        raise CatalogError(
            f"`{entry.name}` names the builder `{entry.builder}` and the scheme `{scheme}`. Write "
            f"`library.builder`, and a scheme of {', '.join(SCHEMES)}."
        )
    LIBRARIES[library].preload()
    preload()
    inner = dataclasses.replace(entry, library=library, builder=builder, overrides=overrides)
    model = LIBRARIES[library].build(inner).to(getattr(torch, entry.dtype)).eval()
    quantisation = optional("torchao.quantization")
    quantisation.quantize_(model, SCHEMES[scheme](quantisation), _is_quantised)
    return optional("torchao.utils").unwrap_tensor_subclass(model)


def _is_quantised(module: torch.nn.Module, path: str) -> bool:
    """Return whether a module is a linear layer whose rows are whole groups."""
    del path
    return isinstance(module, torch.nn.Linear) and module.in_features % GROUP == 0
