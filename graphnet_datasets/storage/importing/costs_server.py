"""The fork server of an import with costs, which are computed on torch's fake tensors."""

import contextlib

from ...isolation import serve
from .reading import work

with contextlib.suppress(ModuleNotFoundError):  # without torch the cost columns are null
    from ...frameworks.torch import costs  # noqa: F401 - imported once for all jobs

if __name__ == "__main__":
    serve(work)
