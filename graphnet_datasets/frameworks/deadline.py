"""Time limits for preparing a sample."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from ..errors import TimeLimitError
from ..inputs import interrupted_by

DEFAULT_TIME_LIMIT_S = 120.0
"""More than three times the time to walk the largest graph of the upstream corpus on a busy
machine."""


class Deadline:
    """A deadline that starts when it is created; a `limit_s` of None means `DEFAULT_TIME_LIMIT_S`.

    >>> Deadline(60.0).check("`example`")
    >>> try:
    ...     Deadline(0.0).check("Walking `example`")
    ... except TimeLimitError as error:
    ...     print(error)
    Walking `example` takes longer than `time_limit_s` of 0 s. Increase it, or skip the sample.
    """

    def __init__(self, limit_s: float | None = None) -> None:
        self.limit_s = DEFAULT_TIME_LIMIT_S if limit_s is None else limit_s
        self._end = time.monotonic() + self.limit_s

    @property
    def left_s(self) -> float:
        """The remaining seconds."""
        return max(0.0, self._end - time.monotonic())

    def check(self, phase: str) -> None:
        """Raise if the deadline has passed.

        Raises:
            TimeLimitError: the deadline has passed; the message begins with `phase`.
        """
        if time.monotonic() >= self._end:
            raise TimeLimitError(
                f"{phase} takes longer than `time_limit_s` of {self.limit_s:g} s. Increase it, or "
                "skip the sample."
            )


@contextlib.contextmanager
def drawing_until(deadline: Deadline, phase: str) -> Iterator[None]:
    """Interrupt random number generation in the block at the deadline, even within a single large
    tensor.

    Raises:
        TimeLimitError: the deadline has passed; the message begins with `phase`.
    """
    with interrupted_by(lambda: deadline.check(phase)):
        yield
