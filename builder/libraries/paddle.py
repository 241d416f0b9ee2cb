"""Models of paddle, which have a worker of their own: `builder.paddle_worker`.

No process imports both frameworks, so this module contains only the parent's part.
"""

from __future__ import annotations

from typing import NoReturn

from ..catalog import CatalogError, Entry


def preload() -> None:
    """Nothing is left to import."""


def build(entry: Entry) -> NoReturn:
    """Refuse: a worker of torch has no paddle.

    Raises:
        CatalogError: always.
    """
    raise CatalogError(f"`{entry.name}` is a model of paddle; `builder.paddle_worker` captures it.")
