"""What a process that times calls does with memory that a call has freed."""

from __future__ import annotations

from collections.abc import Mapping

KEPT_HEAP: Mapping[str, str] = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
}
"""Environment of processes that time calls on a CPU: the heap keeps what has been freed.

The C library of GNU gives the end of the heap back to the kernel once more than a threshold of it
is free, and takes what is larger than another threshold from the kernel at each call. Both
thresholds rise with the largest block that was ever freed, and what lies behind the free end
prevents that it is returned. So by what the process did before, a call of a millisecond either
takes its outputs from the heap, or has the kernel clear pages for them and takes three times as
long: beside one candidate and not beside another, or in one process of eager and not in the next.
Fixed, the thresholds are the same for all (mallopt(3)): blocks of less than 32 MiB, the greatest
that can be said, always come from the heap, larger ones always from the kernel. Other C libraries
do not look at these variables.
"""
