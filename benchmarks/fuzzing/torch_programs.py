"""Programs of operators of torch under test (see `programs`)."""

import functools

from . import programs
from .programs import is_checked
from .torch_target import is_checked as _is_checked
from .torch_target import mutated, set_up
from .torch_target import names as _names

__all__ = ["attempt", "is_checked", "names", "set_up"]


@functools.cache
def names() -> tuple[str, ...]:
    """Return the operators that `materialize` takes unasked."""
    return tuple(name for name in _names() if _is_checked(name))


attempt = functools.partial(programs.attempt, "torch", mutated, names)
