"""Models of paddle, which have a worker of their own: `builder.paddle_worker`.

No process imports both frameworks, so this module contains only the parent's part.
"""

from __future__ import annotations

from typing import NoReturn

from ..catalog import CatalogError, Entry


def preload() -> None:
    """Do nothing: the worker has already imported the library."""


def build(entry: Entry) -> NoReturn:
    """Raise an error, because a worker of torch cannot import paddle.

    Raises:
        CatalogError: always.
    """
    raise CatalogError(
        f"`{entry.name}` is a model of paddle. Capture it with `builder.paddle_worker`."
    )
