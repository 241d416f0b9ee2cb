"""The fork server of a framework that transforms samples; without one it writes tables."""

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
    """Import what all jobs need, and serve them."""
    framework = os.environ.get(FRAMEWORK_VARIABLE)
    if framework:
        with not_collecting():
            make_runtime(framework, "cpu", 1)  # several jobs run beside each other
            module(framework, "runtime").import_all(with_fakes=True)
            module(framework, "observing")
            module(framework, "results")
            for name in os.environ.get(MODULES_VARIABLE, "").split():
                # Without it each sample is refused, and says why.
                with contextlib.suppress(GraphNetError):
                    module(framework, name)
            prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
