"""Fork server whose jobs compile graphs and collect the generated kernels."""

import os

from ..benchmark.handover import COMPILERS_VARIABLE
from ..collector import not_collecting
from ..compilers.inductor import Inductor
from ..frameworks import module
from ..inputs import prepare_blocks
from ..isolation import serve
from .worker import work


def main() -> None:
    """Import the modules that all jobs need, and serve jobs."""
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
