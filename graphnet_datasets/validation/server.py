"""The fork server of the checks that run samples of a framework."""

import importlib
import os

from ..collector import not_collecting
from ..frameworks import FRAMEWORK_VARIABLE, framework_named, module
from ..inputs import prepare_blocks
from ..isolation import serve
from .check_job import CAPTURES_VARIABLE


def main() -> None:
    """Import the modules that all jobs need, and serve jobs."""
    framework = framework_named(os.environ[FRAMEWORK_VARIABLE])
    with not_collecting():
        module(framework.name, "runtime").import_all(with_fakes=True)
        worker = importlib.import_module(framework.validation)
    with not_collecting():  # imported objects live as long as the process; skip collecting them
        prepare_blocks()
        if os.environ.get(CAPTURES_VARIABLE) and hasattr(worker, "prepare"):
            worker.prepare()
    serve(worker.work)


if __name__ == "__main__":
    main()
