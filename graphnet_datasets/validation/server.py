"""The fork server of a framework's checks that run a sample."""

import importlib
import os

from ..collector import collecting_seldom
from ..frameworks import FRAMEWORK_VARIABLE, framework_named, module
from ..inputs import prepare_blocks
from ..isolation import serve


def main() -> None:
    """Import what all jobs need, and serve them."""
    framework = framework_named(os.environ[FRAMEWORK_VARIABLE])
    with collecting_seldom():
        module(framework.name, "runtime").import_all()
        prepare_blocks()
        worker = importlib.import_module(framework.validation)
        if hasattr(worker, "prepare"):
            worker.prepare()
    serve(worker.work)


if __name__ == "__main__":
    main()
