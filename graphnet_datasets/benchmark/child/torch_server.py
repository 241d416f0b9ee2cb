"""The fork server for torch: imports what every job needs, then forks a process for each."""

import os

import torch
import torch._dynamo
import torch._inductor.compile_fx  # two seconds, paid here once instead of in every run

from ...compilers import list_entries
from ...frameworks.torch import materialize, shapes, tensors
from ...inputs import prepare_blocks
from ...isolation import serve
from ..handover import COMPILERS_VARIABLE
from .worker import work

IMPORTED = (torch._dynamo, torch._inductor.compile_fx, materialize, shapes, tensors)


def main() -> None:
    """Import the compilers that come with this library, prepare those wanted, and serve jobs."""
    wanted = os.environ.get(COMPILERS_VARIABLE, "").split(",")
    for entry in list_entries():
        if entry.origin == "built in" and entry.framework == "torch":
            compiler = entry.load()
            if entry.name in wanted and compiler.is_available()[0]:
                compiler.prepare()
    prepare_blocks()
    assert not torch.cuda.is_initialized()  # noqa: S101 (a forked process could not use the device)
    serve(work)


if __name__ == "__main__":
    main()
