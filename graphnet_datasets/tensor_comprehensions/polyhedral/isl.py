"""Lazy import of isl, and a limit on its computations."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

from ...errors import MissingExtraError, SchedulingLimitError

MAX_OPERATIONS = 10_000_000
"""Limit for one step, about 2 seconds. Kernels of the paper need a twentieth of it."""

_lock = threading.RLock()


@functools.cache
def isl() -> Any:
    """Import and return `islpy`.

    Raises:
        MissingExtraError: `islpy` is not installed.
    """
    try:
        import islpy
    except ImportError as error:
        raise MissingExtraError("islpy", "tc", "Compiling tensor comprehensions") from error
    return islpy


@contextlib.contextmanager
def limited(operations: int = MAX_OPERATIONS) -> Iterator[None]:
    """Limit the number of isl operations in this context.

    Operations are limited instead of seconds, so that a definition is accepted or rejected
    independently of the machine. isl has a single context, so other threads wait.

    Raises:
        SchedulingLimitError: isl would need more operations.
    """
    library = isl()
    context = library.DEFAULT_CONTEXT
    with _lock:
        context.reset_operations()
        context.set_max_operations(operations)
        try:
            yield
        except library.Error as error:
            # The text that isl parses is generated, so the limit is the only possible reason.
            raise SchedulingLimitError(
                f"The analysis of its dependences exceeds {operations} isl operations."
            ) from error
        finally:
            context.set_max_operations(0)
            context.reset_operations()
