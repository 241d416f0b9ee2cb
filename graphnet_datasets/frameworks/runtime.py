"""The runtime of a framework for benchmark runs, and checks of devices."""

from __future__ import annotations

from .contract import module
from .protocols import Runtime

ROW_WORDS = 1024
"""Number of 8-byte words in a row of a checksum, which sums words by row and by column."""
SCRAMBLE = -7046029254386353131
"""2^64 divided by the golden ratio, as an odd int64; its multiples are well distributed."""


def make_runtime(framework: str, device: str, num_threads: int) -> Runtime:
    """Return the runtime of a framework. Only that framework is imported.

    Raises:
        UnknownFrameworkError, MissingExtraError: as `contract.module`.
    """
    return module(framework, "runtime").make_runtime(device, num_threads)


def find_device_problem(framework: str, device: str) -> str:
    """Return why a framework cannot use a device on this machine, or "".

    A framework's `runtime` module may define `count_gpus`, which returns the number of visible
    GPUs, or None if the build lacks GPU support. Without it, problems surface only when a sample
    runs.

    >>> find_device_problem("torch", "cpu")
    ''
    """
    kind, _, index = device.partition(":")
    count_gpus = getattr(module(framework, "runtime"), "count_gpus", None)
    if kind not in ("cuda", "gpu") or count_gpus is None:
        return ""
    count = count_gpus()
    if count is None:
        return f"the installed {framework} is built without CUDA"
    if not count:
        return f"{framework} finds no GPU"
    if int(index or 0) >= count:
        return f"{framework} finds {count} GPUs, of which the last is `cuda:{count - 1}`"
    return ""
