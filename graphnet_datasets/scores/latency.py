"""Size classes of samples by eager's time: below 1 ms, 1 to 10 ms, above 10 ms.

Below a millisecond the overhead of each call dominates, above ten milliseconds the kernels do, so a
mean over both would describe neither.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .run_sets import device_kind

SIZE_LIMITS_MS = (1.0, 10.0)


class SizeClass(enum.StrEnum):
    """The class of a sample by the median time of one call of eager."""

    SHORT = "below 1 ms"
    MEDIUM = "1 to 10 ms"
    LONG = "above 10 ms"
    UNKNOWN = "eager not timed"


def eager_ms(table: pa.Table) -> npt.NDArray[np.float64]:
    """Return eager's median time of each record in ms; NaN where it was not timed.

    >>> eager_ms(pa.table({"baseline_latency_ms": [[1.0, 3.0, 2.0], None, []]})).tolist()
    [2.0, nan, nan]
    """
    return np.array(
        [
            float(np.median(times)) if times else math.nan
            for times in table["baseline_latency_ms"].to_pylist()
        ],
        dtype=np.float64,
    )


def size_class(milliseconds: float) -> SizeClass:
    """Return the size class of a time in milliseconds.

    >>> [str(size_class(time)) for time in (0.2, 1.0, 10.0, 11.0, math.nan)]
    ['below 1 ms', '1 to 10 ms', '1 to 10 ms', 'above 10 ms', 'eager not timed']
    """
    if not math.isfinite(milliseconds):
        return SizeClass.UNKNOWN
    if milliseconds < SIZE_LIMITS_MS[0]:
        return SizeClass.SHORT
    return SizeClass.MEDIUM if milliseconds <= SIZE_LIMITS_MS[1] else SizeClass.LONG


def size_classes(tables: Iterable[pa.Table]) -> dict[str, SizeClass]:
    """Return the size class of each sample: of the median of eager's times in all its records.

    A sample whose compilation failed before eager was timed is classified by the records of the
    other arms. Pass tables of only one kind of device.
    """
    times: dict[str, list[float]] = {}
    for table in tables:
        for name, time in zip(table["sample_id"].to_pylist(), eager_ms(table), strict=True):
            latencies = times.setdefault(name, [])
            if math.isfinite(time):
                latencies.append(time)
    return {
        name: size_class(float(np.median(latencies)) if latencies else math.nan)
        for name, latencies in times.items()
    }


def split_by_size(arms: Mapping[str, pa.Table]) -> dict[SizeClass, dict[str, pa.Table]]:
    """Return the records of each size class by arm, the shortest calls first.

    >>> arms = {"x": pa.table({"sample_id": ["a", "b"], "baseline_latency_ms": [[0.5], [20.0]],
    ...     "device": ["cpu", "cpu"]})}
    >>> {str(name): list(part) for name, part in split_by_size(arms).items()}
    {'below 1 ms': ['x'], 'above 10 ms': ['x']}
    """
    devices = {name: device_kind(table) or "cpu" for name, table in arms.items()}
    by_device: dict[str, list[pa.Table]] = {}
    for name, device in devices.items():
        by_device.setdefault(device, []).append(arms[name])
    classes = {device: size_classes(tables) for device, tables in by_device.items()}
    parts: dict[SizeClass, dict[str, pa.Table]] = {}
    for size in SizeClass:
        for name, table in arms.items():
            of_device = classes[devices[name]]
            chosen = [of_device[sample] is size for sample in table["sample_id"].to_pylist()]
            if any(chosen):
                parts.setdefault(size, {})[name] = table.filter(pa.array(chosen))
    return parts
