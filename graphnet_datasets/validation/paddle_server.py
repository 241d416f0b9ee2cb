"""The fork server for checks that run samples of paddle."""

from ..inputs import prepare_blocks
from ..isolation import serve
from .paddle_worker import work


def main() -> None:
    """Prepare what all jobs need, and serve them."""
    prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
