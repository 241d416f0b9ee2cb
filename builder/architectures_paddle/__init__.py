"""Architectures in paddle by catalog name.

Code that `paddle.jit.to_static` rewrites calls `zip` without `strict`, which it does not support.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paddle import nn

from . import audio, choosing, language, mixed, science, vision, zoo

ARCHITECTURES: Mapping[str, Callable[..., nn.Layer]] = {
    **zoo.ARCHITECTURES,
    **vision.ARCHITECTURES,
    **language.ARCHITECTURES,
    **audio.ARCHITECTURES,
    **science.ARCHITECTURES,
    **mixed.ARCHITECTURES,
    **choosing.ARCHITECTURES,
}
