"""Peak rates are measured once per environment and bound a run from below."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from graphnet_datasets.benchmark.judging import roofline
from graphnet_datasets.benchmark.judging.roofline import (
    PeakRates,
    floor_ms,
    peak_rates,
    store_peak_rates,
)
from graphnet_datasets.errors import RunError

PEAKS = PeakRates("cpu", "", 1, {"float32": 1e9, "bfloat16": 4e9}, 2e9)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(roofline.MATRIX_SIZE, "cpu", 128)
    monkeypatch.setattr(roofline, "COPY_BYTES", 2**20)
    return tmp_path


def test_the_slower_of_arithmetic_and_memory_decides() -> None:
    assert floor_ms(1e6, 1e3, "float32", PEAKS) == 1.0
    assert floor_ms(1e6, 8e6, "float32", PEAKS) == 4.0
    assert floor_ms(1e6, None, "bfloat16", PEAKS) == 0.25


def test_a_dtype_without_a_rate_is_bound_by_the_fastest() -> None:
    assert floor_ms(4e6, 0, "int8", PEAKS) == 1.0


def test_rates_are_measured_once_per_environment(small: Path) -> None:
    measured = peak_rates("cpu", num_threads=1)
    assert measured.bytes_per_s > 1e6
    assert min(measured.flops_per_s.values()) >= measured.flops_per_s["float32"] > 1e6
    again = peak_rates("cpu", num_threads=1)
    assert again == measured or not measured.is_quiet
    assert again == again.raised(measured)
    (cached,) = (small / "graphnet_datasets").iterdir()
    cached.write_text("{half a fi")
    assert peak_rates("cpu", num_threads=1).num_threads == 1


@pytest.mark.usefixtures("small")
def test_rates_of_a_busy_machine_are_measured_again_and_raised() -> None:
    measured = peak_rates("cpu", num_threads=1)
    assert (measured.load or 0) >= 0
    assert 0 <= (measured.other_cpu_share or 0) <= 1
    low = dataclasses.replace(
        measured, flops_per_s={"float32": 1.0, "bfloat16": 1e30}, bytes_per_s=1e30
    )
    for state in ({"other_cpu_share": 0.9}, {"steal_share": 0.5}, {"other_cpu_share": None}):
        store_peak_rates(dataclasses.replace(low, **state))
        raised = peak_rates("cpu", num_threads=1)
        assert raised.flops_per_s["float32"] > 1e6
        assert raised.flops_per_s["bfloat16"] == raised.bytes_per_s == 1e30
    quiet = dataclasses.replace(low, load=0.0, other_cpu_share=0.0, steal_share=0.0)
    store_peak_rates(quiet)
    assert peak_rates("cpu", num_threads=1) == quiet
    assert peak_rates("cpu", num_threads=1, refresh=True).bytes_per_s < 1e30


def test_rates_of_an_older_version_count_as_busy(small: Path) -> None:
    measured = peak_rates("cpu", num_threads=1)
    (file,) = (small / "graphnet_datasets").iterdir()
    state = ("load", "other_cpu_share", "steal_share")
    stored = {k: v for k, v in json.loads(file.read_text()).items() if k not in state}
    file.write_text(json.dumps(stored | {"bytes_per_s": 1.0}))
    assert peak_rates("cpu", num_threads=1).bytes_per_s > 1e6
    assert measured.load is not None


def test_a_home_without_rights_costs_nothing_but_the_cache(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = small / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert peak_rates("cpu", num_threads=1).device == "cpu"


def test_a_device_that_is_not_there_is_named() -> None:
    with pytest.raises(RunError, match="There is no device `cuda:9`"):
        peak_rates("cuda:9")
