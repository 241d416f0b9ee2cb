"""The fork server of an import that counts costs, which are counted on torch's fake tensors."""

import contextlib

from ...isolation import serve
from .reading import work

with contextlib.suppress(ModuleNotFoundError):  # without torch the columns are null
    from ...frameworks.torch import costs  # noqa: F401 - once for all jobs

if __name__ == "__main__":
    serve(work)
