"""Memory that outlives the arrays in it."""

from __future__ import annotations

import gc
import mmap
import os
import subprocess
import sys
import threading

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphnet_datasets.inputs import kept_memory
from graphnet_datasets.inputs.kept_memory import KEPT_BYTES, REGION_BYTES, KeptMemory

pytestmark = pytest.mark.skipif(
    not hasattr(mmap, "MADV_FREE"), reason="the system cannot be told that it may take pages"
)


def address(array: npt.NDArray) -> int:
    """Return where an array lies."""
    return array.ctypes.data


def test_memory_of_an_array_is_used_again_when_no_view_of_it_is_left() -> None:
    memory = KeptMemory()
    first = memory.take(10_000)
    view = first.view(np.uint16)[5:]
    where = address(first)
    del first
    gc.collect()
    assert memory.num_kept_bytes == 0
    assert address(memory.take(10_000)) != where
    del view
    gc.collect()
    assert memory.num_kept_bytes >= 10_000
    again = memory.take(10_000)
    assert address(again) == where


def test_free_pieces_beside_each_other_become_one() -> None:
    memory = KeptMemory()
    pieces = [memory.take(1000) for _ in range(9)]
    low = address(pieces[0])
    for place in (1, 7, 3, 5, 0, 8, 2, 6, 4):
        pieces[place] = np.empty(0, np.uint8)
    assert address(memory.take(REGION_BYTES)) == low


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 300_000), st.booleans(), st.integers(0, 7)), max_size=60))
def test_arrays_that_live_never_share_a_byte(steps: list[tuple[int, bool, int]]) -> None:
    memory = KeptMemory()
    live: dict[int, npt.NDArray] = {}
    for number, (size, is_taken, place) in enumerate(steps):
        if is_taken or not live:
            live[number] = memory.take(size)
            assert live[number].size == size
            live[number][:] = number
        else:
            del live[sorted(live)[place % len(live)]]
    assert all((array == number).all() for number, array in live.items())
    used = sum(-(-array.nbytes // 64) * 64 for array in live.values())
    live.clear()
    if used:
        assert memory.num_kept_bytes >= used
        assert all(region.is_free for region in memory._regions)


def test_regions_grow_and_excess_memory_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = KeptMemory()
    monkeypatch.setattr(kept_memory, "KEPT_BYTES", REGION_BYTES)
    held = [memory.take(REGION_BYTES) for _ in range(4)]
    assert [region.size for region in memory._regions] == [
        REGION_BYTES,
        REGION_BYTES,
        2 * REGION_BYTES,
    ]
    held.clear()
    assert memory.num_kept_bytes <= 2 * REGION_BYTES
    assert REGION_BYTES < KEPT_BYTES


def test_an_array_that_no_region_has_room_for_gets_one() -> None:
    memory = KeptMemory()
    small, large = memory.take(100), memory.take(3 * REGION_BYTES + 5)
    large[-1] = 7
    assert (small.size, large.size, large[-1]) == (100, 3 * REGION_BYTES + 5, 7)


def test_without_such_memory_arrays_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    memory = KeptMemory()
    array = memory.take(5000)
    array[:] = 1
    assert array.sum() == 5000
    assert memory._regions == []


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="the system has no huge pages")
@pytest.mark.parametrize("told", [None, "0", "1"])
def test_huge_pages_are_asked_for_where_numpy_may_ask(
    monkeypatch: pytest.MonkeyPatch, told: str | None
) -> None:
    monkeypatch.delenv("NUMPY_MADVISE_HUGEPAGE", raising=False)
    if told is not None:
        monkeypatch.setenv("NUMPY_MADVISE_HUGEPAGE", told)
    asked: list[int] = []

    class Watched(mmap.mmap):
        def madvise(self, option: int, *rest: int) -> None:
            asked.append(option)
            super().madvise(option, *rest)

    monkeypatch.setattr(mmap, "mmap", Watched)
    KeptMemory().take(5000)
    assert (mmap.MADV_HUGEPAGE in asked) is (told != "0")


def test_an_array_may_end_while_memory_is_being_taken() -> None:
    """As when the garbage collector runs in the midst of it: nothing waits for itself."""
    memory = KeptMemory()
    array = memory.take(5000)
    with memory._lock:
        del array
        gc.collect()
    assert memory.num_kept_bytes >= 5000


def test_threads_take_and_end_beside_each_other() -> None:
    memory = KeptMemory()
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(300):
            arrays = [memory.take(1000 + 64 * turn) for _ in range(3)]
            for array in arrays:
                array[:] = number
            if not all((array == number).all() for array in arrays):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    gc.collect()
    assert memory.num_kept_bytes > 0
    assert all(region.is_free for region in memory._regions)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_has_arrays_of_its_own_and_ends_without_a_word() -> None:
    code = """
import os, numpy as np
from graphnet_datasets.inputs import kept_memory
array = kept_memory.take(100_000)
array[:] = 1
kept_memory._pool._lock.acquire()
if os.fork() == 0:
    other = kept_memory.take(100_000)
    other[:] = 2
    assert (array == 1).all()
    del array
    raise SystemExit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
assert (array == 1).all()
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
