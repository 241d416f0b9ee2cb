"""Fork server whose jobs convert samples."""

import importlib.util

from ..collector import not_collecting
from ..inputs import prepare_blocks
from ..isolation import serve
from .worker import work


def main() -> None:
    """Import torch, if it is installed, and serve jobs."""
    with not_collecting():
        if importlib.util.find_spec("torch") is not None:
            from . import programs  # noqa: F401 - most jobs need its imports
        prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
