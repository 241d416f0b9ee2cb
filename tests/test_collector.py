"""The collector is back as it was, however work inside ends and overlaps."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from graphnet_datasets.collector import SELDOM, collecting_seldom


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
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
