"""The fork server of a bisection, which imports all modules of a trial and then forks trials."""

from ..benchmark.child.server import prepare
from ..isolation import serve
from .trial_worker import work


def main() -> None:
    """Import the framework and the requested compiler, and serve jobs."""
    prepare()
    serve(work)


if __name__ == "__main__":
    main()
