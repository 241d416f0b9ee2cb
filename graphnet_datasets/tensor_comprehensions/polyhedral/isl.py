"""The binding to isl, imported when it is first needed."""

from __future__ import annotations

import functools
from typing import Any

from ...errors import MissingExtraError


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
