"""Who follows a walk on fake tensors and takes note of what each operator costs or gives."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any


class Observer:
    """Follows a walk, and takes note of nothing; it is entered inside the fake tensors' context."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> Any:
        return None

    def start(self, input_bytes: int, inputs: Sequence[Any]) -> None:
        """Take note of the inputs, before it is entered."""

    def begin(self, position: int) -> None:
        """Take note of the operator that is called next."""

    def fail(self) -> None:
        """Take note that it could not be called on fake tensors."""

    def end(self, result: Any) -> None:
        """Take note of what it gave."""

    def noted(self) -> Any:
        """Return what was noted since `begin`."""

    def repeat(self, noted: Any) -> contextlib.AbstractContextManager[Any]:  # noqa: ARG002
        """Note it again for a call like that one; results are made inside of the context."""
        return contextlib.nullcontext()

    def extrapolate(self, *noted: Any) -> Any:  # noqa: ARG002
        """Return what is left to note of a loop after two shorter ones were walked.

        `noted` is what was noted since `begin` after the first and after the second of them, a
        tuple of their numbers of steps, and the number of all steps.
        """
        return None
