"""The Paddle baseline as its own candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .paddle_base import PaddleCompiler


class PaddleEager(PaddleCompiler):
    """Return the layer unchanged."""

    name = "paddle-eager"

    def compile(
        self,
        module: Callable[..., Any],
        example_inputs: Mapping[str, Any],  # noqa: ARG002
    ) -> Callable[..., Any]:
        return module
