"""What a run asks of NumPy's arrays."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graphnet_datasets.frameworks.outputs import (
    MAX_EXCERPT,
    SCALARS,
    excerpt_of,
    leaves,
    write_leaves,
)
from graphnet_datasets.frameworks.protocols import Reading


class ToyClock:
    """A clock of the device, which counts ticks of a nanosecond."""

    name = "toy_ticks"

    def __init__(self) -> None:
        self._ticks = time.perf_counter_ns

    def measure(self, call: Callable[[], Any]) -> Reading:
        started = self._ticks()
        result = call()
        elapsed_ms = max(self._ticks() - started, 1) / 1e6
        return Reading(result, elapsed_ms, elapsed_ms)

    def now_s(self) -> float:
        return self._ticks() / 1e9


class ToyRuntime:
    def __init__(self, device: str, num_threads: int) -> None:
        self.device = device

    def make_clock(self) -> ToyClock:
        return ToyClock()

    def make_evictor(self) -> None: ...

    def seed(self, seed: int) -> None: ...

    def synchronize(self) -> None: ...

    def clone(self, value: Any) -> Any:
        return value.copy() if isinstance(value, np.ndarray) else value

    def clone_outputs(self, outputs: Any) -> Any:
        return copy.deepcopy(outputs)

    def copy_module(self, module: Any, count: int, *, is_separate: bool) -> list[Any]:
        return [copy.deepcopy(module) if is_separate else copy.copy(module) for _ in range(count)]

    def tensors_of(self, module: Any) -> dict[str, Any]:
        return dict(module.weights)

    def is_equal(self, left: Any, right: Any) -> bool:
        return np.asarray(left).tobytes() == np.asarray(right).tobytes()

    def checksum(self, tensor: Any) -> int:
        return hash(np.asarray(tensor).tobytes())

    def restore(self, tensor: Any, pristine: Any) -> None:
        tensor[...] = pristine

    def poison(
        self, outputs: Any, protected: set[int], spared: frozenset[int] = frozenset()
    ) -> None:
        for index, leaf in enumerate(leaves(outputs)):
            if index not in spared and not self.storages(leaf) & protected:
                leaf.fill(np.nan)

    def storages(self, *tensors: Any) -> set[int]:
        return {each.ctypes.data for each in tensors if isinstance(each, np.ndarray)}

    def write_outputs(self, outputs: Any, path: Path) -> list[dict[str, Any]]:
        return write_leaves(outputs, path, _describe)

    def capture(self, call: Callable[..., Any], make_arguments: Callable[[], Any]) -> Any:
        raise RuntimeError("not offered for toy")

    def excerpt(
        self, outputs: Any, start: int | None, most: int = MAX_EXCERPT
    ) -> list[tuple[str, list[int], Any]]:
        found = list(leaves(outputs))
        return [
            (str(each.dtype), list(each.shape), each.reshape(-1)[part].tobytes())
            for each in found
            for part in [excerpt_of(each.size, len(found), start, most)]
        ]

    def digest(self, outputs: Any) -> list[tuple[str, tuple[int, ...], int, bool]]:
        return [
            (str(each.dtype), each.shape, self.checksum(each), bool(np.isfinite(each).all()))
            for each in leaves(outputs)
        ]

    def num_bytes(self, *tensors: Any) -> int:
        return sum(each.nbytes for each in tensors if isinstance(each, np.ndarray))

    def watch(self, module: Any) -> dict[str, Any]:
        return {}

    def reset_peak_memory(self) -> None: ...

    def peak_memory_bytes(self) -> int | None:
        return None


def _describe(leaf: Any, index: int) -> tuple[str, list[int], Any]:
    if type(leaf) in SCALARS:
        return SCALARS[type(leaf)], [], np.array(leaf, SCALARS[type(leaf)]).tobytes()
    return str(leaf.dtype), list(leaf.shape), leaf.tobytes()


def make_runtime(device: str, num_threads: int) -> ToyRuntime:
    return ToyRuntime(device, num_threads)


def import_all(*, with_compiler: bool = False, with_fakes: bool = False) -> tuple[str, ...]:
    return ()
