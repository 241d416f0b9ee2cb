"""Clocks, heat and throttling of a GPU at one moment, as its driver tells them (NVML).

Two runs of one kernel differ by a third where the second was throttled, and nothing in their times
says so. The driver is asked before and after the timed calls, outside them; it starts no context.
"""

from __future__ import annotations

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
"""Reasons for lower clocks that say nothing of the load: no work, or clocks fixed on purpose."""


def read_device_state(device: str, nvml: Any = None) -> dict[str, Any] | None:
    """Return the state of a GPU by the fields of `DEVICE_STATE_FIELDS`.

    None where `device` is no GPU, where `nvidia-ml-py` (`pynvml`) is not installed, or where the
    driver cannot be reached; a single figure that the driver does not give is None. `nvml` is the
    module to ask, `pynvml` by default.

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
    """Tell whether power or heat held the clocks down.

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
    # Two names of one call: drivers before 535 have the older one only.
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
