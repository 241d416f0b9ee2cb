"""The fork server for jobs that extract tasks from graphs."""

import importlib
import os

from ..collector import not_collecting
from ..frameworks import module
from ..inputs import prepare_blocks
from ..isolation import serve
from .extract_worker import work
from .intrinsics import import_meta_schedule


def main() -> None:
    """Import the modules that all jobs need, and serve the jobs."""
    os.environ["TVM_NUM_THREADS"] = "1"  # read when TVM is imported
    with not_collecting():
        lazy_modules = module("torch", "runtime").import_all(with_compiler=False)
        import_meta_schedule()
        importlib.import_module("tvm.relax.frontend.torch")
        prepare_blocks()
    serve(work, lazy_modules)


if __name__ == "__main__":
    main()
