"""The fork server of a framework: imports what every job needs, then forks a process for each."""

import contextlib
import json
import os

from ...compilers import list_entries
from ...errors import CompilerError
from ...frameworks import FRAMEWORK_VARIABLE, module
from ...inputs import prepare_blocks
from ...isolation import serve
from ..handover import COMPILERS_VARIABLE, OPTIONS_VARIABLE
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
                with contextlib.suppress(CompilerError):  # the job that looks at it says so
                    compiler(json.loads(os.environ.get(OPTIONS_VARIABLE) or "{}"))
                    compiler.prepare()
    prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
