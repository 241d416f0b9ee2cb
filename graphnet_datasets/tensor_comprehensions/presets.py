"""Named starting options for kinds of operators."""

from __future__ import annotations

from ..errors import TensorComprehensionError
from .options import CudaOptions, Options

_PRESETS: dict[str, Options] = {
    "default": Options(),
    "naive": Options(backend="scalar", tile=(32, 32, 32)),
    "pointwise": Options(unroll=128, cuda=CudaOptions(threads=(32, 4, 4), blocks=(100, 100, 100))),
    "mlp": Options(outer_fusion="max", tile=(1,), cuda=CudaOptions(threads=(128,), blocks=(128,))),
    "conv": Options(
        tile=(4, 8, 8, 8), cuda=CudaOptions(threads=(4, 16, 4), blocks=(256, 256, 256))
    ),
    "group_conv": Options(tile=(1, 1), cuda=CudaOptions(threads=(4, 16, 4), blocks=(256, 256))),
    "single_thread": Options(tile=(1,), threads=1, cuda=CudaOptions(threads=(1,), blocks=(1,))),
}
PRESETS = tuple(_PRESETS)
"""Names accepted by `preset`."""


def preset(name: str) -> Options:
    """Return the options of a preset.

    Raises:
        TensorComprehensionError: there is no such preset.

    >>> preset("naive").backend, preset("mlp").outer_fusion
    ('scalar', 'max')
    """
    try:
        return _PRESETS[name]
    except KeyError:
        raise TensorComprehensionError(
            f"There is no preset `{name}`. Choose from {', '.join(PRESETS)}."
        ) from None
