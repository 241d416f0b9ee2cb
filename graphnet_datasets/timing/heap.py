"""Heap settings of processes that time calls on a CPU."""

from __future__ import annotations

from collections.abc import Mapping

KEPT_HEAP: Mapping[str, str] = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
}
"""Environment variables that make glibc keep freed memory in the heap.

glibc returns the end of the heap to the kernel when more than one threshold of it is free, and
requests every block above another threshold directly from the kernel. Both thresholds grow with the
largest block freed so far, and a live block near the end of the heap prevents returning it. The
history of a process therefore decides whether a call of one millisecond takes its outputs from the
heap, or waits for the kernel to clear pages and takes three times as long. The result could differ
between candidates, or between two processes that run eager. Fixed thresholds (mallopt(3)) make all
processes behave alike: blocks below 32 MiB, the largest value allowed, always come from the heap,
and larger blocks always come from the kernel. Other C libraries ignore these variables.
"""
