"""Interface for recording the costs or results of each operator of a walk."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any


class Observer:
    """An observer that records nothing; it is entered inside the fake-tensor context."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> Any:
        return None

    def start(self, input_bytes: int, inputs: Sequence[Any]) -> None:
        """Record the inputs, before the observer is entered."""

    def begin(self, position: int) -> None:
        """Record the position of the operator that is called next."""

    def fail(self) -> None:
        """Record that the operator could not run on fake tensors."""

    def end(self, result: Any) -> None:
        """Record the operator's result."""

    def noted(self) -> Any:
        """Return the records made since `begin`."""

    def repeat(self, noted: Any) -> contextlib.AbstractContextManager[Any]:  # noqa: ARG002
        """Add the records of an earlier, identical call; results are created in this context."""
        return contextlib.nullcontext()

    def fork(self) -> Observer:
        """Return an observer for the walk over a body."""
        return Observer()

    def join(self, bodies: Sequence[Observer], repeats: int | None) -> Any:  # noqa: ARG002
        """Return the records of a call of bodies, for `repeat`.

        One of the bodies runs if `repeats` is None; otherwise all of them run `repeats` times.
        """
        return None

    def extrapolate(self, *noted: Any) -> Any:  # noqa: ARG002
        """Return the records that remain for a loop after two shorter loops were walked.

        `noted` contains the records since `begin` after the first and after the second loop, a
        tuple of their step counts, and the full step count.
        """
        return None
