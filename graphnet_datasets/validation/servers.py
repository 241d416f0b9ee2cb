"""The fork servers of a validator, which are started early and ended together."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence

from ..errors import RunError
from ..frameworks import FRAMEWORK_VARIABLE, framework_named
from ..isolation import ForkServer, num_processors
from .check_job import CAPTURES_VARIABLE, CAPTURING
from .outcomes import CHECKS, RUNNING

MODULE = "graphnet_datasets.validation.server"
"""The module that serves the checks of any framework."""


class CheckServers:
    """One server for each framework or, with two `jobs` or more, two: one for what captures.

    What captures a graph imports more than what runs one, so that servers which are apart have the
    other checks of a sample made before the first capture can begin.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.are_apart = (num_processors() if jobs is None else jobs) > 1
        self._servers: dict[tuple[str, bool], ForkServer] = {}
        self._starting: dict[tuple[str, bool], threading.Thread] = {}

    def __contains__(self, server: ForkServer) -> bool:
        return any(each is server for each in self._servers.values())

    def __len__(self) -> int:
        return len(self._servers)

    def of(self, framework: str, check: str) -> ForkServer:
        """Return the server of a check; one that is being started is waited for."""
        key = self._key(framework, check)
        if key in self._starting:
            self._starting.pop(key).join()
        return self._find(key)

    def start(self, framework: str, checks: Sequence[str] = CHECKS) -> None:
        """Begin to start the servers of checks, and do not wait for them.

        Nothing happens where the framework is not installed, or no check runs its samples.
        """
        found = framework_named(framework)
        if not found.is_installed or not found.validation:
            return
        for check in reversed(CHECKS):  # what captures has the most to import
            if check in checks and check in (*RUNNING, "statically_analysable"):
                self._start(self._key(framework, check))

    def _start(self, key: tuple[str, bool]) -> None:
        if key in self._servers:
            return
        server = self._find(key)

        def begin() -> None:
            with contextlib.suppress(RunError):  # the first check starts it again, and tells
                server.start()

        self._starting[key] = threading.Thread(target=begin, daemon=True)
        self._starting[key].start()

    def close(self) -> None:
        """End all servers, and the jobs under way in them."""
        closing = [threading.Thread(target=self._close, args=[key]) for key in self._servers]
        for each in closing:
            each.start()
        for each in closing:
            each.join()
        self._servers.clear()

    def _close(self, key: tuple[str, bool]) -> None:
        server = self._servers[key]
        server.close()
        starting = self._starting.pop(key, None)
        while starting is not None and starting.is_alive():
            # One that had hardly begun has started it meanwhile, and waits for its imports.
            starting.join(0.02)
            server.close()

    def _key(self, framework: str, check: str) -> tuple[str, bool]:
        return framework, check in CAPTURING or not self.are_apart

    def _find(self, key: tuple[str, bool]) -> ForkServer:
        framework, is_capturing = key
        if key not in self._servers:
            environment = {
                FRAMEWORK_VARIABLE: framework,
                CAPTURES_VARIABLE: "1" if is_capturing else "",
                "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
            }
            self._servers[key] = ForkServer(MODULE, environment=environment)
        return self._servers[key]
