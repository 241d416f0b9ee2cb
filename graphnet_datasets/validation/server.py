"""The fork server of a framework's checks that run a sample."""

import importlib
import os

from ..frameworks import framework_named, module
from ..inputs import prepare_blocks
from ..isolation import serve

FRAMEWORK_VARIABLE = "GRAPHNET_DATASETS_FRAMEWORK"
"""The environment variable that names the framework of the jobs."""


def main() -> None:
    """Import what all jobs need, and serve them."""
    framework = framework_named(os.environ[FRAMEWORK_VARIABLE])
    module(framework.name, "runtime").import_all()
    prepare_blocks()
    serve(importlib.import_module(framework.validation).work)


if __name__ == "__main__":
    main()
