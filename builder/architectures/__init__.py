"""Architectures in plain torch, by their names in catalogs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

from . import (
    audio,
    control_flow,
    dense_prediction,
    forecasting,
    generative,
    graphs,
    language,
    multimodal,
    operators,
    patches,
    recommenders,
    tabular,
    vision,
)

ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    **vision.ARCHITECTURES,
    **patches.ARCHITECTURES,
    **dense_prediction.ARCHITECTURES,
    **generative.ARCHITECTURES,
    **language.ARCHITECTURES,
    **audio.ARCHITECTURES,
    **multimodal.ARCHITECTURES,
    **operators.ARCHITECTURES,
    **graphs.ARCHITECTURES,
    **recommenders.ARCHITECTURES,
    **forecasting.ARCHITECTURES,
    **tabular.ARCHITECTURES,
    **control_flow.ARCHITECTURES,
}
