"""Empty directories that frameworks create when they are imported.

Torch creates the cache of inductor among the temporary files, and paddle a directory for data sets
in the home directory, whether or not they are used.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_INDUCTOR_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
"""Set by torch to the directory that it creates, if the user has not set it."""
_PADDLE_DIRECTORIES = (".cache", ".cache/paddle", ".cache/paddle/dataset")


@contextlib.contextmanager
def removed_if_empty() -> Iterator[None]:
    """Remove the directories that frameworks created during the block and left empty."""
    has_variable = _INDUCTOR_VARIABLE in os.environ
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - `Path.home` fails without a home
    created = [path for name in _PADDLE_DIRECTORIES if not (path := home / name).exists()]
    try:
        yield
    finally:
        if not has_variable and (path := os.environ.get(_INDUCTOR_VARIABLE)):
            created.append(Path(path))
        for path in reversed(created):
            with contextlib.suppress(OSError):  # it is missing or in use
                path.rmdir()
