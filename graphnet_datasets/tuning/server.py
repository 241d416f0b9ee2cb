"""The fork server for jobs that measure candidates or serve spaces.

The server imports TVM but starts none of its threads, because threads do not survive a fork.
"""

import os

os.environ.setdefault("TVM_NUM_THREADS", "1")  # read when TVM is imported

from ..isolation import serve
from .intrinsics import import_meta_schedule
from .worker import work


def main() -> None:
    """Import the modules that all jobs need, and serve the jobs."""
    import_meta_schedule()
    serve(work)


if __name__ == "__main__":
    main()
