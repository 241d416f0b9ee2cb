"""The fork server whose jobs measure candidates and hold spaces.

It imports TVM and starts none of its threads: those would not exist in the jobs that are forked.
"""

import os

os.environ.setdefault("TVM_NUM_THREADS", "1")  # read when TVM is imported

from ..isolation import serve
from .intrinsics import import_meta_schedule
from .worker import work


def main() -> None:
    """Import what all jobs need, and serve them."""
    import_meta_schedule()
    serve(work)


if __name__ == "__main__":
    main()
