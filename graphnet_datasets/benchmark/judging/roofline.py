"""The speed of light of a device: its measured peak rates and the shortest times they allow.

The rates are the best results of a few short measurements: a large square matrix product per dtype
(FLOP/s) and a large copy (bytes read and written per second). They
are cached per environment and number of threads, since they depend on neither the sample nor the
compiler.

Rates measured on a busy machine are too low. They are stored with the state of the machine and
measured again at the next use. Rates are only ever raised, by another measurement or by a faster
run of eager.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...atomic import write_text
from ...decoding import read_json
from ...errors import RunError
from ...frameworks import framework_named, framework_names, module, offers
from ...frameworks.runtime import find_device_problem
from ...timing.caches import cpu_cache_bytes
from ...timing.disturbance import is_busy
from ...timing.usage import describe_machine, read_machine
from ...user_cache import cache_directory
from ..records.environment import describe_environment, environment_id

PEAK_DTYPES = ("float32", "bfloat16", "float16")
REPEATS = 8
BUDGET_S = 1.0
"""An operation that takes longer than this, in seconds, is not repeated."""
MATRIX_SIZE = {"cpu": 1536, "cuda": 8192}
"""The number of rows and columns of the matrices, large enough to saturate the device."""
COPY_BYTES = 256 * 2**20
"""Several times the largest last-level cache of a CPU; a GPU copies eight times as much."""


@dataclasses.dataclass(frozen=True)
class PeakRates:
    """Measured peak rates of a device.

    `flops_per_s` maps a dtype to multiplications and additions per second. `bytes_per_s` counts
    bytes read from and written to memory. `cache_bytes` is the size of the last-level cache.
    `load`, `other_cpu_share` and `steal_share` are the state of the machine during the least busy
    measurement (see `timing.usage`), or None for rates stored by older versions.
    """

    device: str
    environment_id: str
    num_threads: int
    flops_per_s: Mapping[str, float]
    bytes_per_s: float
    cache_bytes: int = 0
    load: float | None = None
    other_cpu_share: float | None = None
    steal_share: float | None = None

    @property
    def is_quiet(self) -> bool:
        """Return whether no other process used the processors during the measurement."""
        if self.other_cpu_share is None or self.steal_share is None:
            return False
        return not is_busy(dataclasses.asdict(self))

    def raised(self, other: PeakRates) -> PeakRates:
        """Return the maximum of both rates, with the state of the less busy measurement.

        >>> slow = PeakRates("cpu", "", 1, {"float32": 1e9}, 4e9, other_cpu_share=0.9)
        >>> fast = PeakRates("cpu", "", 1, {"float32": 9e9}, 2e9, other_cpu_share=0.0)
        >>> peaks = slow.raised(fast)
        >>> peaks.flops_per_s, peaks.bytes_per_s, peaks.other_cpu_share
        ({'float32': 9000000000.0}, 4000000000.0, 0.0)
        """
        shares = [
            math.inf if peaks.other_cpu_share is None else peaks.other_cpu_share
            for peaks in (self, other)
        ]
        rates = {**self.flops_per_s}
        for dtype, rate in other.flops_per_s.items():
            rates[dtype] = max(rate, rates.get(dtype, 0.0))
        return dataclasses.replace(
            self if shares[0] <= shares[1] else other,
            flops_per_s=rates,
            bytes_per_s=max(self.bytes_per_s, other.bytes_per_s),
        )


def floor_ms(flops: float | None, bytes_moved: float | None, dtype: str, peaks: PeakRates) -> float:
    """Return the shortest time in milliseconds that the peak rates allow for this much work.

    For a dtype without a measured rate the fastest rate is used, so that the floor is never too
    high. Unknown work (None) does not contribute.

    >>> peaks = PeakRates("cpu", "", 1, {"float32": 1e9}, 1e9)
    >>> floor_ms(2e6, 1e6, "float32", peaks)
    2.0
    """
    rate = peaks.flops_per_s.get(dtype) or max(peaks.flops_per_s.values())
    return 1000 * max((flops or 0) / rate, (bytes_moved or 0) / peaks.bytes_per_s)


def peak_rates(
    device: str = "cpu", *, num_threads: int | None = None, refresh: bool = False
) -> PeakRates:
    """Return the device's peak rates, measured now or by an earlier call in this environment.

    A measurement takes a few seconds and is cached under `$XDG_CACHE_HOME/graphnet_datasets`. Rates
    from a busy machine are measured again and raised; `refresh` replaces them.

    Raises:
        RunError: the device is missing or too small for the measurement.
        MissingExtraError: no framework that can measure is installed.
    """
    threads = num_threads or len(os.sched_getaffinity(0))
    environment = environment_id(describe_environment(device))
    cached = None if refresh else load_peak_rates(device, environment, threads)
    if cached is not None and cached.is_quiet:
        return cached
    peaks = PeakRates(device, environment, threads, **measure_peak_rates(device, threads))
    peaks = peaks if cached is None else cached.raised(peaks)
    store_peak_rates(peaks)
    return peaks


def load_peak_rates(device: str, environment: str, num_threads: int) -> PeakRates | None:
    """Return the cached rates of this environment, or None."""
    return _read(_cache_path(device, environment, num_threads))


def store_peak_rates(peaks: PeakRates) -> None:
    """Cache rates for `load_peak_rates`."""
    _write(_cache_path(peaks.device, peaks.environment_id, peaks.num_threads), peaks)


def measure_peak_rates(device: str, threads: int) -> dict[str, Any]:
    """Measure the rates of `PeakRates` and the state of the machine, ignoring the cache.

    Raises:
        RunError: the device is missing or too small for the measurement.
        MissingExtraError: no framework that can measure is installed.
    """
    names = [name for name in framework_names() if offers(name, "peaks")]
    framework = next((name for name in names if framework_named(name).is_installed), names[0])
    work = module(framework, "peaks", "Measuring peak rates")
    if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", device):
        raise RunError(
            f"Peak rates cannot be measured on `{device}`. Choose one device: `cpu`, `cuda` or "
            "`cuda:1`."
        )
    kind = device.partition(":")[0]
    with work.using(device, threads) as synchronize:
        if problem := find_device_problem(framework, device):
            raise RunError(f"The device `{device}` cannot be used: {problem}.")
        machine = read_machine()
        size = MATRIX_SIZE[kind]
        flops: dict[str, float] = {}
        for dtype in PEAK_DTYPES:
            seconds = _best(work.make_product(device, dtype, size), synchronize)
            # A narrow dtype without a fast product can use float32 instead.
            flops[dtype] = max(2 * size**3 / seconds, flops.get("float32", 0.0))
        num_bytes = COPY_BYTES * (8 if kind == "cuda" else 1)
        seconds = _best(work.make_copy(device, num_bytes), synchronize)
        return {
            "flops_per_s": flops,
            "bytes_per_s": 2 * num_bytes / seconds,
            "cache_bytes": work.cache_bytes(device) or cpu_cache_bytes(),
            **describe_machine(machine, read_machine()),
        }


def _best(call: Callable[[], Any], synchronize: Callable[[], None]) -> float:
    """Return the shortest of several times in seconds, since a peak only has to be reached once."""
    times = []
    while not times or (len(times) < REPEATS and sum(times) < BUDGET_S):
        synchronize()
        start = time.perf_counter_ns()
        call()
        synchronize()
        times.append((time.perf_counter_ns() - start) * 1e-9)
    return min(times)


def _cache_path(device: str, environment: str, num_threads: int) -> Path:
    name = f"peaks-{device.replace(':', '-')}-{num_threads}-{environment}.json"
    return cache_directory() / name


def _read(path: Path) -> PeakRates | None:
    try:
        peaks = PeakRates(**read_json(path))
    except (OSError, ValueError, TypeError):
        return None
    numbers = (peaks.bytes_per_s, *peaks.flops_per_s.values())
    return peaks if min(numbers) > 0 and len(numbers) > 1 else None


def _write(path: Path, peaks: PeakRates) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(dataclasses.asdict(peaks)))
    except OSError:
        # The cache only saves a few seconds; an unwritable home directory must not fail the
        # measurement.
        return
