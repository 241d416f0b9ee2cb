"""Programs of operators of paddle under test (see `programs`)."""

import functools

from . import programs
from .paddle_target import is_checked as _is_checked
from .paddle_target import mutated, set_up
from .paddle_target import names as _names
from .programs import is_checked

__all__ = ["attempt", "is_checked", "names", "set_up"]


@functools.cache
def names() -> tuple[str, ...]:
    """Return the operators that `materialize` takes unasked."""
    return tuple(name for name in _names() if _is_checked(name))


attempt = functools.partial(programs.attempt, "paddle", mutated, names)
