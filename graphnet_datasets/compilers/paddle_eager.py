"""No compiler for paddle: the baseline against itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .paddle_base import PaddleCompiler


class PaddleEager(PaddleCompiler):
    """Return the layer as it is."""

    name = "paddle-eager"

    def compile(
        self,
        module: Callable[..., Any],
        example_inputs: Mapping[str, Any],  # noqa: ARG002
    ) -> Callable[..., Any]:
        return module
