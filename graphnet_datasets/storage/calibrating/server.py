"""The fork server that calibrates the samples of a framework."""

import os

from ...collector import not_collecting
from ...frameworks import FRAMEWORK_VARIABLE, module
from ...frameworks.runtime import make_runtime
from ...inputs import prepare_blocks
from ...isolation import serve
from .worker import work


def main() -> None:
    """Import the modules that all jobs need, and serve the jobs."""
    framework = os.environ[FRAMEWORK_VARIABLE]
    with not_collecting():
        make_runtime(framework, "cpu", 1)  # jobs run in parallel; sums keep their order
        module(framework, "runtime").import_all(with_fakes=True)
        module(framework, "calibration")
        prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
