"""The runtime interface that a benchmark run requires of a framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from .contract import module
from .outputs import MAX_EXCERPT

ROW_WORDS = 1024
"""Number of 8-byte words in a row of a checksum, which sums words by row and by column."""
SCRAMBLE = -7046029254386353131
"""2^64 divided by the golden ratio, as an odd int64; its multiples are well distributed."""


class Runtime(Protocol):
    """A framework on one device, with a fixed number of threads and gradients disabled."""

    device: Any
    has_precise_events: bool
    """Whether the device's events have a resolution below one millisecond."""

    def seed(self, seed: int) -> None:
        """Seed every generator, so that random operators draw the same numbers in each arm."""

    def synchronize(self) -> None:
        """Wait until all work on the device is finished."""

    def clone(self, value: Any) -> Any:
        """Return a copy of a tensor with the same strides, or any other value unchanged."""

    def clone_outputs(self, outputs: Any) -> Any:
        """Return a copy of the outputs with the same structure."""

    def copy_module(self, module: Any, count: int, *, is_separate: bool) -> list[Any]:
        """Return copies with separate graphs, and with separate memory for the weights if
        `is_separate`.

        Memory is allocated weight by weight for all copies, in a random order of the copies:
        addresses affect call times by several percent and must not favor one copy. Unless
        `is_separate`, the weights are different tensors that share memory. `module` may become one
        of the copies and must not be used afterwards.
        """
        ...

    def watch(self, module: Any) -> Mapping[str, Any]:
        """Return, by name, the state that affects how eager runs besides its inputs and weights.

        Examples are hooks, the functions that eager calls, and dispatch modes. A candidate could
        modify these to observe eager or to slow it down.
        """
        ...

    def tensors_of(self, module: Any) -> dict[str, Any]:
        """Return the weights of the module by name."""
        ...

    def is_equal(self, left: Any, right: Any) -> bool:
        """Return whether two tensors are bitwise equal."""
        ...

    def checksum(self, tensor: Any) -> int:
        """Return a checksum of a tensor's bits that detects changed elements."""
        ...

    def restore(self, tensor: Any, pristine: Any) -> None:
        """Copy the saved elements back into `tensor`."""

    def poison(
        self, outputs: Any, protected: set[int], spared: frozenset[int] = frozenset()
    ) -> None:
        """Overwrite outputs that are no longer needed, except in protected storages.

        Outputs whose positions are in `spared` are not overwritten either.
        """

    def storages(self, *tensors: Any) -> set[int]:
        """Return the storage addresses of the tensors."""
        ...

    def num_bytes(self, *tensors: Any) -> int:
        """Return the total size in bytes of the tensors' elements."""
        ...

    def write_outputs(self, outputs: Any, path: Path) -> list[dict[str, Any]]:
        """Write the elements of the outputs to `path`; return the dtype, shape and offset of
        each output."""
        ...

    def excerpt(
        self, outputs: Any, start: int | None, most: int = MAX_EXCERPT
    ) -> list[tuple[str, list[int], Any]]:
        """Return the dtype, the shape and a copy of some elements of each output
        (`outputs.excerpt_of`).

        Raises:
            OutputTypeError: an output is not a plain dense tensor or a number.
        """
        ...

    def digest(self, outputs: Any) -> list[tuple[str, tuple[int, ...], int, bool]]:
        """Return the dtype, shape, checksum and finiteness of each output."""
        ...

    def capture(self, call: Callable[..., Any], make_arguments: Callable[[], Any]) -> Any:
        """Capture the call in a CUDA graph for replay. Raises RuntimeError if that is
        impossible."""
        ...

    def count_compilations(self) -> Callable[[], int]:
        """Count compilations by the framework's own compilers; return a function that returns
        the count."""
        ...

    def reset_peak_memory(self) -> None:
        """Reset the device's peak memory statistics."""

    def peak_memory_bytes(self) -> int | None:
        """Return the device's peak memory since the last reset, or None on the CPU."""


class Workload(Protocol):
    """The parts of a run that an oracle needs: the module, its input sets and the inputs it
    writes to."""

    runtime: Runtime
    module: Any
    written: tuple[str, ...]
    state: dict[str, Any]

    def arguments(self, index: int) -> dict[str, Any]:
        """Return fresh arguments of an input set."""
        ...

    def forget_inputs(self) -> None:
        """Release the input sets. The workload cannot run afterwards."""

    def effects(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the tensors that a call has written to besides its outputs."""
        ...


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
