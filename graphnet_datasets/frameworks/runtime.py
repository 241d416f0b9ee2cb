"""What a run asks of a framework's tensors, and the runtime of each framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from .contract import module
from .outputs import MAX_EXCERPT

ROW_WORDS = 1024
"""Words of 8 bytes in a row of a checksum, each of which is summed by row and by column."""
SCRAMBLE = -7046029254386353131
"""2^64 over the golden ratio as an odd int64: its multiples have no small common factors."""


class Runtime(Protocol):
    """A framework on one device, with a fixed number of threads and without gradients."""

    device: Any
    has_precise_events: bool
    """Whether the device's events tell times below a millisecond."""

    def seed(self, seed: int) -> None:
        """Seed every generator, so that random operators draw the same numbers in each arm."""

    def synchronize(self) -> None:
        """Wait until all that was started on the device is done."""

    def clone(self, value: Any) -> Any:
        """Return a copy of a tensor, with its strides; anything else is returned as it is."""

    def clone_outputs(self, outputs: Any) -> Any:
        """Return the outputs, copied, in their structure."""

    def copy_module(self, module: Any, count: int, *, is_separate: bool) -> list[Any]:
        """Return copies with graphs of their own, and with their own memory for the weights.

        Weight by weight, in an order that is drawn, memory is taken for all of them: where it comes
        to lie makes per cents of a call, and is to favour none. Unless `is_separate`, the weights
        are other tensors on the same memory. `module` may become one of them: it is used no more.
        """
        ...

    def watch(self, module: Any) -> Mapping[str, Any]:
        """Return, by name, what decides how eager runs besides its inputs and weights.

        Hooks, the functions that it calls, modes that see its operators: what a candidate would
        change to listen to eager or to slow it.
        """
        ...

    def tensors_of(self, module: Any) -> dict[str, Any]:
        """Return the weights that the module holds, by name."""
        ...

    def is_equal(self, left: Any, right: Any) -> bool:
        """Tell whether two tensors hold the same bits."""
        ...

    def checksum(self, tensor: Any) -> int:
        """Return a sum over the bits of a tensor, which a change of its elements changes."""
        ...

    def restore(self, tensor: Any, pristine: Any) -> None:
        """Write the saved elements back into `tensor`."""

    def poison(
        self, outputs: Any, protected: set[int], spared: frozenset[int] = frozenset()
    ) -> None:
        """Overwrite outputs that nobody needs any more, unless their memory is protected.

        Nor are those overwritten that are among `spared`, by their place among the outputs.
        """

    def storages(self, *tensors: Any) -> set[int]:
        """Return the addresses of the memory in which the tensors lie."""
        ...

    def num_bytes(self, *tensors: Any) -> int:
        """Return how many bytes the elements of the tensors take."""
        ...

    def write_outputs(self, outputs: Any, path: Path) -> list[dict[str, Any]]:
        """Write the elements of the outputs to `path`; return dtype, shape and place of each."""
        ...

    def excerpt(
        self, outputs: Any, start: int | None, most: int = MAX_EXCERPT
    ) -> list[tuple[str, list[int], Any]]:
        """Return dtype, shape and some elements, copied, of each output (`outputs.excerpt_of`).

        Raises:
            OutputTypeError: an output is something else than a plain dense tensor or a number.
        """
        ...

    def digest(self, outputs: Any) -> list[tuple[str, tuple[int, ...], int, bool]]:
        """Return dtype, shape, checksum, and whether all is finite, of each output."""
        ...

    def capture(self, call: Callable[..., Any], make_arguments: Callable[[], Any]) -> Any:
        """Return the call in a CUDA graph, to be replayed; RuntimeError where that cannot be."""
        ...

    def count_compilations(self) -> Callable[[], int]:
        """Count compilations by the framework's own compilers; return a function with the count."""
        ...

    def reset_peak_memory(self) -> None:
        """Begin a new measurement of the device's peak memory."""

    def peak_memory_bytes(self) -> int | None:
        """Return the device's peak memory since the last reset, None where only the CPU is used."""


class Workload(Protocol):
    """What an oracle takes of a run: the module, its input sets, and what the graph writes to."""

    runtime: Runtime
    module: Any
    written: tuple[str, ...]
    state: dict[str, Any]

    def arguments(self, index: int) -> dict[str, Any]:
        """Return fresh arguments of an input set."""
        ...

    def forget_inputs(self) -> None:
        """Let go of the input sets; nothing runs after this."""

    def effects(self, arguments: Mapping[str, Any]) -> list[Any]:
        """Return what a call has written to beside its outputs."""
        ...


def make_runtime(framework: str, device: str, num_threads: int) -> Runtime:
    """Return the runtime of a framework; only that framework is imported.

    Raises:
        UnknownFrameworkError, MissingExtraError: as `contract.module`.
    """
    return module(framework, "runtime").make_runtime(device, num_threads)


def find_device_problem(framework: str, device: str) -> str:
    """Return why a device cannot be used by a framework here, or "".

    A framework's module `runtime` may say how many GPUs it reaches, None without support for any
    (`count_gpus`); of one that does not, nothing is known before a sample runs.

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
