"""The fork server of a framework, which imports common modules and forks a process per job."""

import contextlib
import json
import os

from ...collector import not_collecting
from ...compilers import list_entries
from ...errors import CompilerError
from ...frameworks import FRAMEWORK_VARIABLE, module
from ...inputs import prepare_blocks
from ...isolation import serve
from ..handover import COMPILERS_VARIABLE, OPTIONS_VARIABLE
from .harness_snapshot import prepare_snapshots
from .worker import work


def main() -> None:
    """Prepare the imports for jobs and serve the jobs."""
    with not_collecting():
        seldom = prepare()
    serve(work, seldom)


def prepare() -> tuple[str, ...]:
    """Import the framework and the requested compilers of this library.

    Returns additional modules that some jobs import.
    """
    framework = os.environ[FRAMEWORK_VARIABLE]
    # Before any module of this library with a global `torch`: pickled names of torch's objects, and
    # with them the keys of TorchInductor's caches, contain the first such module.
    if framework == "torch":
        import torch  # noqa: F401
    wanted = {name for name in os.environ.get(COMPILERS_VARIABLE, "").split(",") if name}
    options = {
        entry.name: entry
        for entry in list_entries()
        if entry.origin == "built in" and entry.framework == framework
    }
    is_all_known = bool(wanted) and wanted <= options.keys()
    compilers = [options[name].load() for name in sorted(wanted & options.keys() or options.keys())]
    seldom = module(framework, "runtime").import_all(
        # The requirements of a third-party compiler are unknown before it is loaded.
        with_compiler=not is_all_known or any(cls.uses_framework_compiler for cls in compilers)
    )
    for compiler in compilers:
        if compiler.name in wanted and compiler.is_available()[0]:
            with contextlib.suppress(CompilerError):  # the inspecting job reports it
                compiler(json.loads(os.environ.get(OPTIONS_VARIABLE) or "{}"))
                compiler.prepare()
    prepare_blocks()
    prepare_snapshots()
    return seldom


if __name__ == "__main__":
    main()
