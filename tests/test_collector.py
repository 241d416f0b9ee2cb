"""The collector is back as it was, however work inside ends and overlaps."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from graphnet_datasets.collector import SELDOM, collecting_seldom, not_collecting


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    gc.unfreeze()  # a command that ended in this process has frozen all that there was
    yield
    gc.set_threshold(*before)


def test_thresholds_come_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="inside"), collecting_seldom(), collecting_seldom():
        assert gc.get_threshold() == SELDOM
        raise ValueError("inside")
    assert gc.get_threshold() == (701, 11, 12)


def test_thresholds_come_back_once_the_last_thread_has_left() -> None:
    is_inside, may_leave = threading.Event(), threading.Event()

    def work() -> None:
        with collecting_seldom():
            is_inside.set()
            may_leave.wait(30)

    thread = threading.Thread(target=work)
    with collecting_seldom():
        thread.start()
        assert is_inside.wait(30)
    assert gc.get_threshold() == SELDOM
    may_leave.set()
    thread.join(30)
    assert gc.get_threshold() == (701, 11, 12)


def test_a_collector_that_is_off_stays_off() -> None:
    gc.set_threshold(0, 11, 12)
    with collecting_seldom():
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold() == (0, 11, 12)


def test_it_rests_until_the_last_import_has_ended_and_is_seldom_outside_of_it() -> None:
    with collecting_seldom():
        with not_collecting(), not_collecting():
            with collecting_seldom():
                assert gc.get_threshold()[0] == 0
            assert gc.get_threshold()[0] == 0
        assert gc.get_threshold() == SELDOM
    assert gc.get_threshold() == (701, 11, 12)


@pytest.mark.slow
def test_objects_made_during_a_pause_are_still_collected() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.me = self

    gc.collect()
    frozen = gc.get_freeze_count()
    with not_collecting():
        kept = [Cycle() for _ in range(SELDOM[0])]
        lost = weakref.ref(Cycle())
        assert lost() is not None
    assert gc.get_count()[0] < SELDOM[0]
    assert gc.get_freeze_count() == frozen
    gc.collect(0)
    is_left = lost() is not None
    gc.collect()
    assert (is_left, lost(), len(kept)) == (True, None, SELDOM[0])


def test_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with not_collecting():
            kept = [[] for _ in range(SELDOM[0])]
        # Single ones go as nothing refers to them any more.
        assert gc.get_freeze_count() > frozen // 2
        assert len(kept) == SELDOM[0]
    finally:
        gc.unfreeze()


def test_a_collector_that_is_disabled_inside_stays_so_and_gets_its_thresholds_back() -> None:
    try:
        with not_collecting():
            gc.disable()
        assert (gc.isenabled(), gc.get_threshold()) == (False, (701, 11, 12))
    finally:
        gc.enable()
