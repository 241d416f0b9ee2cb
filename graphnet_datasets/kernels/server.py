"""The fork server whose jobs compile graphs and keep what was generated."""

from ..compilers.inductor import Inductor
from ..frameworks import module
from ..inputs import prepare_blocks
from ..isolation import serve
from .worker import work


def main() -> None:
    """Import what all jobs need, and serve them."""
    module("torch", "runtime").import_all(with_compiler=True)
    module("torch", "fusion")
    if Inductor.is_available()[0]:
        Inductor.prepare()
    prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
