"""The baseline as its own candidate, which shows the noise of the measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .base import Compiler


class Eager(Compiler):
    """Return the module unchanged."""

    name = "eager"
    uses_framework_compiler = False

    def compile(
        self,
        module: Callable[..., Any],
        example_inputs: Mapping[str, Any],  # noqa: ARG002
    ) -> Callable[..., Any]:
        return module
