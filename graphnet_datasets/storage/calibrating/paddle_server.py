"""The fork server that calibrates samples of paddle; each job imports paddle itself."""

from ...inputs import prepare_blocks
from ...isolation import serve
from .worker import work


def main() -> None:
    """Prepare what all jobs need, and serve them."""
    prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
