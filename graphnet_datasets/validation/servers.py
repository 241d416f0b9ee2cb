"""The fork servers of a validator, started early and closed together."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence

from ..errors import RunError
from ..frameworks import FRAMEWORK_VARIABLE, framework_named
from ..isolation import ForkServer, num_processors
from .check_job import CAPTURES_VARIABLE, CAPTURING
from .outcomes import CHECKS, RUNNING


class CheckServers:
    """The servers of each framework: one, or with two or more `jobs` also one for capturing.

    Capturing a graph requires more imports than running it. With separate servers, the other checks
    of a sample can run before the capturing server is ready.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.are_apart = (num_processors() if jobs is None else jobs) > 1
        self._servers: dict[tuple[str, bool], ForkServer] = {}
        self._starting: dict[tuple[str, bool], threading.Thread] = {}

    def __contains__(self, server: ForkServer) -> bool:
        return any(candidate is server for candidate in self._servers.values())

    def __len__(self) -> int:
        return len(self._servers)

    def of(self, framework: str, check: str) -> ForkServer:
        """Return the server of a check, waiting for it if it is starting."""
        key = self._key(framework, check)
        if key in self._starting:
            self._starting.pop(key).join()
        return self._find(key)

    def start(self, framework: str, checks: Sequence[str] = CHECKS) -> None:
        """Start the servers of these checks in the background.

        Does nothing if the framework is not installed or no check runs its samples.
        """
        contract = framework_named(framework)
        if not contract.is_installed or not contract.validation:
            return
        for check in reversed(CHECKS):  # the capturing server has the most to import
            if check in checks and check in (*RUNNING, "statically_analysable"):
                self._start(self._key(framework, check))

    def _start(self, key: tuple[str, bool]) -> None:
        if key in self._servers:
            return
        server = self._find(key)

        def begin() -> None:
            with contextlib.suppress(
                RunError
            ):  # the first check starts the server again and reports the error
                server.start()

        self._starting[key] = threading.Thread(target=begin, daemon=True)
        self._starting[key].start()

    def close(self) -> None:
        """Stop all servers and their jobs."""
        closing = [threading.Thread(target=self._close, args=[key]) for key in self._servers]
        for server_name in closing:
            server_name.start()
        for server_name in closing:
            server_name.join()
        self._servers.clear()

    def _close(self, key: tuple[str, bool]) -> None:
        server = self._servers[key]
        server.close()
        starting = self._starting.pop(key, None)
        while starting is not None and starting.is_alive():
            # A thread at its very beginning may have started the server meanwhile, so close it
            # again.
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
            self._servers[key] = ForkServer(
                framework_named(framework).validation, environment=environment
            )
        return self._servers[key]
