"""The fork server for paddle: imports what every job needs, then forks a process for each."""

import os
import warnings

# Paddle's executor tells of every program that it runs, on the channel that the log is made of.
os.environ.setdefault("GLOG_minloglevel", "2")  # glog spells it so

with warnings.catch_warnings():
    # Where no ccache is installed paddle says so; nothing here builds extensions.
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    import paddle

from ...compilers import list_entries
from ...frameworks.paddle import materialize, shapes, tensors
from ...inputs import prepare_blocks
from ...isolation import serve
from ..handover import COMPILERS_VARIABLE
from . import paddle_runtime
from .worker import work

IMPORTED = (paddle, materialize, shapes, tensors, paddle_runtime)


def main() -> None:
    """Import the compilers that come with this library, prepare those wanted, and serve jobs."""
    wanted = os.environ.get(COMPILERS_VARIABLE, "").split(",")
    for entry in list_entries():
        if entry.origin == "built in" and entry.framework == "paddle":
            compiler = entry.load()
            if entry.name in wanted and compiler.is_available()[0]:
                compiler.prepare()
    prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
