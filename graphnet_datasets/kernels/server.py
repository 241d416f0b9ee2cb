"""The fork server whose jobs compile graphs and keep what was generated."""

import os

from ..benchmark.handover import COMPILERS_VARIABLE
from ..collector import not_collecting
from ..compilers.inductor import Inductor
from ..frameworks import module
from ..inputs import prepare_blocks
from ..isolation import serve
from .worker import work


def main() -> None:
    """Import what all jobs need, and serve them."""
    is_inductor = os.environ.get(COMPILERS_VARIABLE) == Inductor.name
    with not_collecting():
        seldom = module("torch", "runtime").import_all(with_compiler=is_inductor)
        if is_inductor:
            module("torch", "fusion")
            Inductor.prepare()
        prepare_blocks()
    serve(work, seldom)


if __name__ == "__main__":
    main()
