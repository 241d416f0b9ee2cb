"""Cold caches."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphnet_datasets.frameworks.runtime import make_runtime
from graphnet_datasets.timing import caches
from graphnet_datasets.timing.alone import measure_alone
from graphnet_datasets.timing.pairs import TimingSettings, measure_pairs

from .test_pairs import FakeClock


def test_the_largest_cache_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for index, size in enumerate(("32K", "1024K", "96M")):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        (folder / "size").write_text(size + "\n")
    monkeypatch.setattr(caches.os, "sysconf_names", {})
    assert caches.cpu_cache_bytes(tmp_path) == 96 * 2**20
    assert caches.cpu_cache_bytes(tmp_path / "none") == caches._UNKNOWN_CACHE_BYTES


@pytest.mark.parametrize(("text", "expected"), [("512K\n", 2**19), ("4096", 4096), ("?", 0)])
def test_sizes_are_read_as_the_system_writes_them(text: str, expected: int) -> None:
    assert caches._parse_size(text) == expected


def test_eviction_touches_twice_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "cpu_cache_bytes", lambda: 2**16)
    evict = caches.make_evictor()
    evict()
    evict()
    (buffer,) = [
        cell.cell_contents
        for cell in evict.__closure__ or ()
        if hasattr(cell.cell_contents, "nbytes")
    ]
    assert buffer.nbytes == 2**17
    assert (buffer == 2).all()


def test_caches_are_evicted_before_each_timed_call_only() -> None:
    events: list[str] = []

    def call() -> float:
        events.append("call")
        return 1.0

    settings = TimingSettings(warmup_s=0, min_warmup_calls=1, min_pairs=3, max_pairs=3)
    times = measure_pairs(
        call,
        call,
        settings=settings,
        clock=FakeClock(),
        evict_caches=lambda: events.append("evict"),
    )
    assert events.count("evict") == 6
    assert events[-12:] == ["evict", "call"] * 6
    assert len(times.baseline_ms) == 3
    events.clear()
    measure_alone(
        call,
        settings=settings,
        clock=FakeClock(),
        evict_caches=lambda: events.append("evict"),
        num_calls=2,
    )
    assert events[-4:] == ["evict", "call"] * 2


@pytest.mark.gpu
def test_eviction_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    evict = make_runtime("torch", "cuda", 1).make_evictor()
    assert evict is not None
    evict()
    torch.cuda.synchronize()
