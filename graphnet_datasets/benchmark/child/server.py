"""The fork server of a framework: imports what every job needs, then forks a process for each."""

import os

from ...compilers import list_entries
from ...frameworks import FRAMEWORK_VARIABLE, module
from ...inputs import prepare_blocks
from ...isolation import serve
from ..handover import COMPILERS_VARIABLE
from .worker import work


def main() -> None:
    """Import the framework and the compilers that come with this library, and serve jobs."""
    framework = os.environ[FRAMEWORK_VARIABLE]
    module(framework, "runtime").import_all()
    wanted = os.environ.get(COMPILERS_VARIABLE, "").split(",")
    for entry in list_entries():
        if entry.origin == "built in" and entry.framework == framework:
            compiler = entry.load()
            if entry.name in wanted and compiler.is_available()[0]:
                compiler.prepare()
    prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
