"""The fork server of a bisection: imports what every trial needs, then forks each of them."""

from ..benchmark.child.server import prepare
from ..isolation import serve
from .trial_worker import work


def main() -> None:
    """Import a framework and the compiler that is wanted; serve."""
    prepare()
    serve(work)


if __name__ == "__main__":
    main()
