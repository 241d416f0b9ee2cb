"""Start a worker module without importing anything from the working directory.

`ForkServer` runs this file by its path with `-P`, because the package itself may only be importable
from a directory in `IMPORT_PATH_VARIABLE`. These directories are appended to `sys.path`, so that
none of their files replaces a module of Python or of an installed package.
"""

import importlib
import os
import sys

IMPORT_PATH_VARIABLE = "GRAPHNET_DATASETS_IMPORT_PATH"
"""Directories to import from last, separated as in PATH."""


def main() -> None:
    """Serve the jobs of the worker module that the first argument names (see `server.main`)."""
    entries = os.environ.get(IMPORT_PATH_VARIABLE, "").split(os.pathsep)
    sys.path += [entry for entry in entries if entry and entry not in sys.path]
    del sys.argv[0]
    importlib.import_module("graphnet_datasets.isolation.server").main(sys.argv[0])


if __name__ == "__main__":
    main()
