"""Construction of a catalog entry's model, usually without weights."""

from __future__ import annotations

import contextlib

import torch

from graphnet_datasets import without_weights

from .catalog import CatalogError, Entry
from .libraries import Library, library_of
from .training import build_with_loss

MAX_WEIGHT_BYTES = 2**30
"""Size limit of the parameters of a model that is captured with weights."""


def build_model(
    entry: Entry, *, with_weights: bool = False, is_measured: bool = False
) -> torch.nn.Module:
    """Return the entry's model in its mode and dtype.

    Parameters are on the meta device, and buffers have elements. With `with_weights`, or if the
    constructor calls parts of the model, parameters have elements too. With `is_measured`,
    initialisers draw elements to be measured (`without_weights`).

    Raises:
        CatalogError: the builder is unknown or does not take the overrides.
        MissingExtraError: the library of the entry is not installed.
    """
    library = library_of(entry)
    if library.has_weights or with_weights:
        model = _build(entry, library, with_weights=True)
    else:
        try:
            model = _build(entry, library, with_weights=False, is_measured=is_measured)
        except RuntimeError as error:
            if "meta" not in str(error):
                raise
            # Its constructor calls a part of the model to determine an output shape.
            model = _build(entry, library, with_weights=True)
    model.train(entry.mode == "train")
    # A cast would also convert the scales of quantised weights.
    return model if library.is_quantised else _cast(model, getattr(torch, entry.dtype))


def _cast(model: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """Cast a model to a dtype, except the modules that its library keeps in float32."""
    words = [f".{name}." for name in _kept_in_float32(model, dtype)]
    named = [*model.named_parameters(), *model.named_buffers()]
    excluded = {
        id(parameter) for path, parameter in named if any(word in f".{path}." for word in words)
    }

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        # `Module.to` would take the imaginary parts from complex weights.
        is_cast = tensor.is_floating_point() and id(tensor) not in excluded
        return tensor.to(dtype) if is_cast else tensor

    return model._apply(cast)


def _kept_in_float32(model: torch.nn.Module, dtype: torch.dtype) -> set[str]:
    """Return names of modules (parts of paths) that a model of transformers keeps in float32."""
    attributes = {
        torch.float16: ("_keep_in_fp32_modules", "_keep_in_fp32_modules_strict"),
        torch.bfloat16: ("_keep_in_fp32_modules_strict",),
    }.get(dtype, ())
    return {
        name
        for module in model.modules()
        for attribute in attributes
        for name in getattr(module, attribute, None) or ()
    }


def weigh(model: torch.nn.Module) -> int:
    """Return the bytes of a model's parameters on any device."""
    return sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())


def _build(
    entry: Entry, library: Library, *, with_weights: bool, is_measured: bool = False
) -> torch.nn.Module:
    torch.manual_seed(0)  # makes randomly drawn buffers reproducible
    try:
        light = without_weights(is_measured=is_measured)
        with contextlib.nullcontext() if with_weights else light:
            return build_with_loss(entry, library.build)
    except TypeError as error:
        raise CatalogError(f"`{entry.name}` cannot be built: {error}") from error


def source_of(entry: Entry) -> tuple[str, str, str]:
    """Return the origin of the model's code, its version and its licence."""
    library = library_of(entry)
    version = f"{entry.library} {library.version}" if library.distribution else ""
    return library.source, version, library.license_of(entry.builder)
