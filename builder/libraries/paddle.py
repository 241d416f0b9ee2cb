"""Models of paddle, which have a worker of their own: `builder.paddle_worker`.

No process holds both frameworks, so here is only what the parent has to know of the library.
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
