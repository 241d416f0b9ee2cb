"""The binding to isl, imported when it is first needed, and a limit on what it may compute."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

from ...errors import MissingExtraError, SchedulingLimitError

MAX_OPERATIONS = 10_000_000
"""What isl may do in one step: about 2 seconds. Kernels of the paper need a twentieth of it."""

_lock = threading.RLock()


@functools.cache
def isl() -> Any:
    """Return the module `islpy`.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import islpy
    except ImportError as error:
        raise MissingExtraError("islpy", "tc", "Compiling tensor comprehensions") from error
    return islpy


@contextlib.contextmanager
def limited(operations: int = MAX_OPERATIONS) -> Iterator[None]:
    """Let isl do so many of its operations inside, and no more.

    Operations rather than seconds, so that a definition that is refused is refused on every
    machine. isl has one context, so other threads wait until this one is done.

    Raises:
        SchedulingLimitError: isl would need more.
    """
    library = isl()
    context = library.DEFAULT_CONTEXT
    with _lock:
        context.reset_operations()
        context.set_max_operations(operations)
        try:
            yield
        except library.Error as error:
            # Text that isl reads is ours and well-formed, so there is no other reason.
            raise SchedulingLimitError(
                f"Its dependences would take isl more than {operations} operations."
            ) from error
        finally:
            context.set_max_operations(0)
            context.reset_operations()
