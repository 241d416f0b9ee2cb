"""Idle fork servers, kept for later calls."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterator, Mapping

from .running import Running


@contextlib.contextmanager
def keep_servers(most: int = 4, *, ignoring: Collection[str] = ()) -> Iterator[None]:
    """Keep worker processes for later calls instead of stopping them after each call.

    A call such as `run` or `validate` starts a process that imports a framework, which takes
    seconds, and forks every job from it. Within this context, up to `most` such processes remain
    when their call is over. A later call reuses a process that it would start in the same way: with
    the same module, environment, import path and processors. Each job still runs in a new fork. A
    kept process takes a few hundred megabytes. It ends with the context, with this process, or when
    more than `most` processes are idle; the process that has been idle longest ends first. Of
    nested contexts, the innermost applies; `most=0` keeps no processes.

    Args:
        most: Maximum number of idle processes.
        ignoring: Environment variables that may differ.

    Raises:
        ValueError: `most` is negative.

    >>> from graphnet_datasets import Sample, validate
    >>> with keep_servers():
    ...     for number in range(2):  # the second one waits for no imports
    ...         sample = Sample(f"example/{number}", "torch", "other", (), (), ())
    ...         is_valid = validate(sample, checks=["runnable"]).is_valid
    """
    if most < 0:
        raise ValueError(f"`most` is {most}, but it must be 0 or more.")
    keeper = _Keeper(most, frozenset(ignoring))
    _keepers.append(keeper)
    try:
        yield
    finally:
        _keepers.remove(keeper)
        keeper.close()


def launch_key(module: str, environment: Mapping[str, str]) -> tuple[object, ...]:
    """Return a key that is equal for interchangeable servers."""
    ignored = _keepers[-1].ignored if _keepers else frozenset()
    variables = frozenset(item for item in environment.items() if item[0] not in ignored)
    return module, variables, frozenset(os.sched_getaffinity(0))


def keep(running: Running) -> bool:
    """Keep an idle server; return False if the caller must end it."""
    return bool(_keepers) and _keepers[-1].put(running)


def take(key: tuple[object, ...]) -> Running | None:
    """Return a running server kept under this key, or None."""
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
        for server in surplus:
            server.end()
        return True

    def pop(self, key: tuple[object, ...]) -> Running | None:
        if not self._is_ours():
            return None
        with self._lock:
            equal = [server for server in self._waiting if server.key == key]
            for server in equal[-1:]:
                self._waiting.remove(server)
        if not equal or equal[-1].is_alive():
            return equal[-1] if equal else None
        equal[-1].end()
        return self.pop(key)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            waiting, self._waiting = self._waiting, []
        if self._is_ours():
            for server in waiting:
                server.end()

    def _is_ours(self) -> bool:
        """Return whether this process started the servers, rather than its parent."""
        return os.getpid() == self._process_id


_keepers: list[_Keeper] = []
"""The open contexts, the innermost last."""
