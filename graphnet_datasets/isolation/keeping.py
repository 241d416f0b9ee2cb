"""Servers that have nothing to do, kept for whoever needs such a one next."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterator, Mapping

from .running import Running


@contextlib.contextmanager
def keep_servers(most: int = 4, *, ignoring: Collection[str] = ()) -> Iterator[None]:
    """Keep worker processes for later calls, instead of ending them with each call.

    A call such as `run` or `validate` starts a process that imports a framework, which takes
    seconds, and forks every job from it. Within this context up to `most` such processes stay when
    their call is over, and a call takes one that would be started in the same way: of the same
    module, with the same environment, import path and processors. Jobs run in a fresh fork as ever.
    What is kept takes some hundred megabytes each, and ends with the context, with this process,
    or when more come: the one that has waited longest first. Of nested contexts the innermost
    counts; `most=0` keeps none.

    Args:
        most: how many processes may wait at a time.
        ignoring: variables of the environment that may differ.

    Raises:
        ValueError: `most` is negative.

    >>> from graphnet_datasets import Sample, validate
    >>> with keep_servers():
    ...     for number in range(2):  # the second one waits for no imports
    ...         sample = Sample(f"example/{number}", "torch", "other", (), (), ())
    ...         is_valid = validate(sample, checks=["runnable"]).is_valid
    """
    if most < 0:
        raise ValueError(f"`most` is {most}, but a number of processes is 0 or more.")
    keeper = _Keeper(most, frozenset(ignoring))
    _keepers.append(keeper)
    try:
        yield
    finally:
        _keepers.remove(keeper)
        keeper.close()


def launch_key(module: str, environment: Mapping[str, str]) -> tuple[object, ...]:
    """Return what two servers share if either may stand for the other."""
    ignored = _keepers[-1].ignored if _keepers else frozenset()
    variables = frozenset(item for item in environment.items() if item[0] not in ignored)
    return module, variables, frozenset(os.sched_getaffinity(0))


def keep(running: Running) -> bool:
    """Keep a server that its owner needs no more; false where it has to be ended."""
    return bool(_keepers) and _keepers[-1].put(running)


def take(key: tuple[object, ...]) -> Running | None:
    """Return a server that was kept under this key and still runs, None if there is none."""
    return _keepers[-1].pop(key) if _keepers else None


class _Keeper:
    def __init__(self, most: int, ignored: frozenset[str]) -> None:
        self.ignored = ignored
        self._most = most
        self._lock = threading.Lock()
        self._waiting: list[Running] = []
        self._is_closed = False
        self._process_id = os.getpid()

    def put(self, running: Running) -> bool:
        successor = running.hand_over() if self._is_ours() else None
        if successor is None:
            return False
        with self._lock:
            self._waiting.append(successor)
            most = 0 if self._is_closed else self._most
            num_surplus = max(len(self._waiting) - most, 0)
            surplus, self._waiting = self._waiting[:num_surplus], self._waiting[num_surplus:]
        for each in surplus:
            each.end()
        return True

    def pop(self, key: tuple[object, ...]) -> Running | None:
        if not self._is_ours():
            return None
        with self._lock:
            equal = [each for each in self._waiting if each.key == key]
            for each in equal[-1:]:
                self._waiting.remove(each)
        if not equal or equal[-1].is_alive():
            return equal[-1] if equal else None
        equal[-1].end()
        return self.pop(key)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            waiting, self._waiting = self._waiting, []
        if self._is_ours():
            for each in waiting:
                each.end()

    def _is_ours(self) -> bool:
        """Whether this process is not a fork of the one that started the servers."""
        return os.getpid() == self._process_id


_keepers: list[_Keeper] = []
"""The contexts that are open, the innermost last."""
