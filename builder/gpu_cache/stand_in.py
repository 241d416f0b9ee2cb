"""A process that sees a GPU on a machine without one, up to the first launch of a kernel.

`stand_in.c` replaces the CUDA driver and runtime below torch. Triton finds its driver through
Python, and TorchInductor loads kernels and times paddings, so these parts are replaced here.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets.compilers.carrying import set_environment
from graphnet_datasets.errors import GraphNetError

from .cards import (
    CAPABILITY,
    CARDS,
    MAX_REGISTERS,
    MAX_SHARED_BYTES,
    NUM_MULTIPROCESSORS,
    WARP_SIZE,
    Card,
)
from .cubin import count_registers

_SOURCE = Path(__file__).with_name("stand_in.c")
_BLOCK_THREADS = 1024

undecided_paddings: list[str] = []
"""Matrix products for which TorchInductor would time a padded form on the GPU. They were compiled
without padding, so the compiled graph may differ from that of a GPU."""


def missing() -> str:
    """Return why the stand-in cannot be used on this machine, or "".

    >>> isinstance(missing(), str)
    True
    """
    headers = _header_folders()
    if not any((folder / "cuda_runtime_api.h").is_file() for folder in headers):
        return (
            "There are no headers of CUDA 13. Install `torch` from PyPI with its CUDA libraries, "
            "as in `constraints-gpu.txt`."
        )
    version = Path(sysconfig.get_path("purelib")) / "torch" / "version.py"
    if not version.is_file() or "cuda: Optional[str] = None" in version.read_text():
        return "This `torch` is not a build for CUDA. Install those of `constraints-gpu.txt`."
    return ""


def pretend(card: Card) -> None:
    """Make this process see `card`, and import torch.

    Raises:
        GraphNetError: torch was imported before, it is not a build for CUDA, or the C compiler
            fails.
    """
    if "torch" in sys.modules:
        raise GraphNetError(
            "`torch` was imported before the stand-in for CUDA. Call `pretend` first in a new "
            "process."
        )
    if reason := missing():
        raise GraphNetError(reason)
    _load_library(card)
    set_environment(os.environ)
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    import torch

    # The stand-in keeps no state that a fork would break, so forked jobs may use it as well.
    _replace({torch.cuda: {"_device_count_nvml": lambda: 1, "_is_in_bad_fork": lambda: False}})
    _replace_triton_driver(torch, card)
    _replace_in_inductor(torch, card)


def _header_folders() -> list[Path]:
    packages = Path(sysconfig.get_path("purelib"))
    return [
        packages / "nvidia" / "cu13" / "include",
        packages / "triton" / "backends" / "nvidia" / "include",
    ]


def _load_library(card: Card) -> None:
    """Compile `stand_in.c` for the card and load it before torch loads CUDA's libraries.

    Its symbols are global, so torch's libraries bind to them. The name of `libcuda.so.1` satisfies
    libraries that depend on the driver.
    """
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "libcuda.so.1"
        command = [
            *(os.environ.get("CC", "gcc"), "-std=gnu11", "-O1", "-shared", "-fPIC"),
            f"-Wl,-soname,{library.name}",
            f'-DCARD_NAME="{card.name}"',
            f"-DCARD_MEMORY_BYTES={card.memory_bytes}ull",
            f"-DCARD_L2_BYTES={card.l2_bytes}",
            *(f"-isystem{path}" for path in _header_folders()),
            *(str(_SOURCE), "-o", str(library)),
        ]
        result = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
        if result.returncode:
            raise GraphNetError(
                f"The stand-in for CUDA does not compile: {result.stderr.strip()[:500]} Install "
                "`gcc` and the packages of `constraints-gpu.txt`."
            )
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def _replace_triton_driver(torch: Any, card: Card) -> None:
    """Give Triton a driver that describes the card and loads kernels by reading their headers."""
    import triton  # pyright: ignore[reportMissingImports] (only builds for CUDA have it)
    from triton.backends.compiler import GPUTarget  # pyright: ignore[reportMissingImports]

    properties = {
        "max_shared_mem": MAX_SHARED_BYTES,
        "max_num_regs": MAX_REGISTERS,
        "multiprocessor_count": NUM_MULTIPROCESSORS,
        "warpSize": WARP_SIZE,
        "sm_clock_rate": card.max_clock_mhz * 1000,
        "mem_clock_rate": card.memory_clock_khz,
        "mem_bus_width": card.memory_bus_bits,
    }

    class Utils:
        @staticmethod
        def get_device_properties(device: int) -> dict[str, int]:
            del device
            return properties

        @staticmethod
        def load_binary(name: str, cubin: bytes, shared: int, device: int) -> tuple[int, ...]:
            del name, shared, device
            return (1, 1, *count_registers(cubin), _BLOCK_THREADS)

    class Driver:
        utils = Utils

        @staticmethod
        def launcher_cls(source: Any, metadata: Any) -> Callable[..., None]:
            del source, metadata
            return _launch_nothing

        @staticmethod
        def get_current_device() -> int:
            return 0

        @staticmethod
        def get_current_stream(device: int = 0) -> int:
            return device * 0

        @staticmethod
        def get_device_capability(device: int = 0) -> tuple[int, int]:
            del device
            return CAPABILITY

        @staticmethod
        def get_current_target() -> GPUTarget:
            major, minor = CAPABILITY
            return GPUTarget("cuda", 10 * major + minor, WARP_SIZE)

        @staticmethod
        def get_active_torch_device() -> Any:
            return torch.device("cuda", 0)

        @staticmethod
        def get_device_interface() -> Any:
            return torch.cuda

    runtime: Any = triton.runtime.driver
    runtime._default = runtime._active = Driver()


def _replace_in_inductor(torch: Any, card: Card) -> None:
    """Replace the parts of TorchInductor that load a kernel or time one while compiling."""
    from torch._inductor.fx_passes import pad_mm
    from torch._inductor.runtime import static_triton_launcher, triton_helpers

    def load_kernel(self: Any, device: int) -> None:
        del device
        if self.function is None:
            self.function = 1
            self.n_regs, self.n_spills = count_registers(Path(self.cubin_path).read_bytes())
            self.cubin_path = self.cubin_raw = None

    def is_padded_faster(key: str, unpadded_ms: float, padded_ms: float) -> bool:
        del unpadded_ms, padded_ms
        undecided_paddings.append(key)
        return False

    replacements: dict[Any, dict[str, Any]] = {
        static_triton_launcher.StaticallyLaunchedTritonKernel: {"load_kernel": load_kernel},
        triton_helpers: {"set_driver_to_gpu": lambda: None},
        torch._utils_internal: {"max_clock_rate": lambda: card.max_clock_mhz},
        pad_mm: {
            "get_do_bench": lambda: _measure_nothing,
            "is_padded_faster": is_padded_faster,
        },
    }
    _replace(replacements)


def _launch_nothing(*arguments: Any) -> None:
    del arguments


def _measure_nothing(call: Callable[[], Any]) -> float:
    del call
    return 1.0


def _replace(replacements: Mapping[Any, Mapping[str, Any]]) -> None:
    """Set attributes of modules and classes that already have them.

    Raises:
        GraphNetError: An attribute does not exist in this version of torch.
    """
    for place, attributes in replacements.items():
        for name, value in attributes.items():
            if not hasattr(place, name):
                raise GraphNetError(
                    f"This version of torch has no `{name}` in `{place.__name__}`. Install the "
                    "versions of `constraints-gpu.txt`."
                )
            setattr(place, name, value)


def card_named(name: str) -> Card:
    """Return the card with this name.

    Raises:
        GraphNetError: There is no such card.

    >>> card_named("h200").name
    'NVIDIA H200'
    """
    if name not in CARDS:
        raise GraphNetError(f"There is no card `{name}`. Choose one of {', '.join(CARDS)}.")
    return CARDS[name]
