"""Clocks, temperature and throttling of a GPU, as reported by its driver (NVML).

Two runs of one kernel can differ by a third if the second was throttled, which its times do not
show. The driver is queried before and after the timed calls; this creates no CUDA context.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ..records.environment import physical_gpu

THROTTLE_REASONS: Mapping[int, str] = {
    0x001: "gpu_idle",
    0x002: "applications_clocks_setting",
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}
"""The bits of `nvmlDeviceGetCurrentClocksEventReasons`, by their names in NVML."""

HARMLESS = frozenset({"gpu_idle", "applications_clocks_setting"})
"""Clock reductions that do not indicate load: an idle GPU, or clocks fixed by the user."""


_QUICK_S, _NUM_QUICK = 0.001, 10
"""The time of a tiny kernel on an idle GPU, and the number of consecutive quick kernels to wait
for."""


def wait_for_quiet_gpu(device: str, timeout_s: float = 2.0) -> bool:
    """Wait until no other process uses a GPU, and return whether this was reached.

    Stopped processes may have launched kernels that are still running. The GPU takes turns between
    processes, so a tiny kernel takes milliseconds until they have finished.
    """
    import torch

    element = torch.zeros(1, device=device)
    num_quick, deadline_s = 0, time.monotonic() + timeout_s
    while num_quick < _NUM_QUICK and time.monotonic() < deadline_s:
        started_s = time.monotonic()
        element.add_(1)
        torch.cuda.synchronize(device)
        is_quick = time.monotonic() - started_s < _QUICK_S
        num_quick = num_quick + 1 if is_quick else 0
    return num_quick >= _NUM_QUICK


def read_device_state(device: str, nvml: Any = None) -> dict[str, Any] | None:
    """Return the state of a GPU with the fields of `DEVICE_STATE_FIELDS`.

    Returns None if `device` is not a GPU, if `nvidia-ml-py` (`pynvml`) is not installed or if the
    driver is unreachable. A value that the driver does not provide is None. `nvml` is the module to
    query, `pynvml` by default.

    >>> read_device_state("cpu") is None
    True
    """
    if not device.startswith("cuda"):
        return None
    if nvml is None:
        try:
            import pynvml as nvml  # type: ignore[import-not-found, no-redef]
        except ImportError:
            return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    try:
        handle = _find(nvml, physical_gpu(device))
        return {
            "sm_clock_mhz": _ask(nvml, lambda: nvml.nvmlDeviceGetClockInfo(handle, 1)),
            "memory_clock_mhz": _ask(nvml, lambda: nvml.nvmlDeviceGetClockInfo(handle, 2)),
            "temperature_c": _ask(nvml, lambda: nvml.nvmlDeviceGetTemperature(handle, 0)),
            "power_w": _ask(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
            "throttle_reasons": _throttle_reasons(nvml, handle),
        }
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()


def is_throttled(state: Mapping[str, Any] | None) -> bool:
    """Return whether power or temperature limits reduced the clocks.

    >>> is_throttled({"throttle_reasons": ["gpu_idle", "sw_power_cap"]}), is_throttled(None)
    (True, False)
    """
    return bool(set((state or {}).get("throttle_reasons") or ()) - HARMLESS)


def name_reasons(bits: int) -> list[str]:
    """Return the names of the throttle reasons whose bits are set.

    >>> name_reasons(0x44)
    ['sw_power_cap', 'hw_thermal_slowdown']
    """
    return [name for bit, name in THROTTLE_REASONS.items() if bits & bit]


def _throttle_reasons(nvml: Any, handle: Any) -> list[str] | None:
    # Drivers before 535 provide only the older name of this call.
    for name in ("EventReasons", "ThrottleReasons"):
        ask = getattr(nvml, f"nvmlDeviceGetCurrentClocks{name}", None)
        bits = None if ask is None else _ask(nvml, lambda ask=ask: ask(handle))
        if bits is not None:
            return name_reasons(int(bits))
    return None


def _find(nvml: Any, gpu: str) -> Any:
    if gpu.isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(gpu))
    return nvml.nvmlDeviceGetHandleByUUID(gpu.encode())


def _ask(nvml: Any, question: Callable[[], Any]) -> Any:
    try:
        return question()
    except nvml.NVMLError:
        return None
