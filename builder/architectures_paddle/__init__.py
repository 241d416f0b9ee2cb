"""Architectures of paddle, by the name under which a catalog calls them.

What `paddle.jit.to_static` rewrites uses `zip` without `strict`, which it does not know.
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
