"""The fork server that transforms the samples of a framework, or writes tables without one."""

import contextlib
import os

from ...collector import not_collecting
from ...errors import GraphNetError
from ...frameworks import FRAMEWORK_VARIABLE, module
from ...frameworks.runtime import make_runtime
from ...inputs import prepare_blocks
from ...isolation import serve
from .worker import MODULES_VARIABLE, work


def main() -> None:
    """Import the modules that all jobs need, and serve the jobs."""
    framework = os.environ.get(FRAMEWORK_VARIABLE)
    if framework:
        with not_collecting():
            make_runtime(framework, "cpu", 1)  # jobs run in parallel
            module(framework, "runtime").import_all(with_fakes=True)
            module(framework, "observing")
            module(framework, "results")
            for name in os.environ.get(MODULES_VARIABLE, "").split():
                # If an import fails, each sample is rejected with the reason.
                with contextlib.suppress(GraphNetError):
                    module(framework, name)
            prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
