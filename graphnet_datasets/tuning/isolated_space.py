"""The search space of a language in an isolated worker, which alone parses tasks and traces."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from ..errors import RunError, TuningError
from ..isolation import ForkServer, Limits
from .candidate import Candidate, ProgramGraph
from .interfaces import Space
from .knobs import trace_knobs
from .languages import TVM, Language
from .measurement import PHASES
from .space_calls import (
    decode_array,
    decode_candidate,
    encode_candidate,
    receive_message,
    send_message,
)
from .task import Task

_GIB = 2**30
_FOREVER_S = 30 * 24 * 3600.0
_SOCKET = "space"
_CHUNK = 256
"""Candidates per request for features, which is a few megabytes."""
_COMPILED_CHUNK = 64
"""Candidates per request for machine code, which takes a fraction of a second for each."""


class IsolatedSpace(Space):
    """The candidates of untrusted tasks; a process that may crash parses them.

    `kind` is `sketches` (for TVM, those of MetaSchedule) or `templates`. The worker starts with the
    first call, and again after a crash. `timeout_s` is the limit of each call. Use the space as a
    context manager, or call `close`. Tasks and traces must pass the verifier unless
    `trust_remote_code`.
    """

    def __init__(
        self,
        *,
        kind: str = "sketches",
        language: Language = TVM,
        timeout_s: float = 300.0,
        memory_bytes: int = 4 * _GIB,
        trust_remote_code: bool = False,
    ) -> None:
        self._trust_remote_code = trust_remote_code
        self._kind, self._timeout_s, self._memory_bytes = kind, timeout_s, memory_bytes
        self.language = language
        self._tasks: dict[str, Task] = {}
        self._added: set[str] = set()
        self._stack: contextlib.ExitStack | None = None
        self._connection: socket.socket | None = None
        self.feature_set = ""
        self.mcpu = ""
        """This machine's processor by the language's name, set when the worker has started."""

    def __enter__(self) -> Self:
        """Start the worker."""
        self._connected()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the worker."""
        self.close()

    def close(self) -> None:
        """Stop the worker; the next call starts a new one."""
        stack, self._stack, self._connection = self._stack, None, None
        self._added.clear()
        if stack is not None:
            stack.close()

    def add(self, task: Task) -> None:
        """Register a task before its candidates are passed to other methods.

        Raises:
            TuningError: the language cannot parse it, or has no candidates for it.
        """
        self._tasks[task.task_id] = task
        self._connected()
        if task.task_id not in self._added:
            self._ask({"method": "add", "task": _sent(task)})
            self._added.add(task.task_id)

    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` distinct candidates, drawn at random."""
        self.add(task)
        call = {"method": "sample", "task": _sent(task), "n": n, "seed": seed}
        return [
            candidate
            for data in self._ask(call)
            if (candidate := decode_candidate(data)) is not None
        ]

    def mutate(self, candidate: Candidate, seed: int) -> Candidate | None:
        """Return a candidate with one decision changed, or None if the change is not legal."""
        return decode_candidate(self._of("mutate", [candidate], seed=seed))

    def crossover(self, first: Candidate, second: Candidate, seed: int) -> Candidate | None:
        """Return a child of two candidates of the same sketch, or None."""
        return decode_candidate(self._of("crossover", [first, second], seed=seed))

    def features(self, candidate: Candidate) -> np.ndarray:
        """Return float32 [stores, f]; f is 164 for TVM."""
        (matrix,) = self.features_of([candidate])
        if matrix is None:
            raise TuningError(
                "The trace of a candidate does not replay on its task. Leave out this candidate."
            )
        return matrix

    def features_of(self, candidates: Sequence[Candidate]) -> list[np.ndarray | None]:
        """Return the features of several candidates, None for those that cannot be scheduled."""
        return self._arrays("features_of", candidates, _CHUNK)

    def machine_code(self, candidate: Candidate) -> np.ndarray:
        """Return the features of the compiled program, float32 [n]; n is 129 for TVM."""
        (features,) = self.machine_code_of([candidate])
        if features is None:
            raise TuningError(
                "The schedule of a candidate does not compile. Leave out this candidate."
            )
        return features

    def machine_code_of(self, candidates: Sequence[Candidate]) -> list[np.ndarray | None]:
        """Return `machine_code` of several candidates, None for those that do not compile."""
        return self._arrays("machine_code_of", candidates, _COMPILED_CHUNK)

    def _arrays(
        self, method: str, candidates: Sequence[Candidate], chunk: int
    ) -> list[np.ndarray | None]:
        arrays: list[np.ndarray | None] = []
        for start in range(0, len(candidates), chunk):
            data = self._of(method, candidates[start : start + chunk])
            arrays += [None if array is None else decode_array(array) for array in data]
        return arrays

    def enumerate(self, task: Task) -> list[Candidate] | None:
        """Return all candidates of a task for the kind `templates`, otherwise None."""
        self.add(task)
        data = self._ask({"method": "enumerate", "task": _sent(task)})
        if data is None:
            return None
        return [candidate for item in data if (candidate := decode_candidate(item)) is not None]

    def knobs(self, candidate: Candidate) -> Mapping[str, float]:
        """Return the decisions in the trace."""
        return trace_knobs(candidate.trace_json)

    def graph(self, candidate: Candidate) -> ProgramGraph:
        """Return the scheduled program as a graph."""
        return ProgramGraph(*map(decode_array, self._of("graph", [candidate])))

    def _of(self, method: str, candidates: Sequence[Candidate], **arguments: Any) -> Any:
        for candidate in candidates:
            task = self._tasks.get(candidate.task_id)
            if task is None:
                raise TuningError(
                    f"The candidate's task `{candidate.task_id}` is unknown to the space. Pass "
                    "the task to `sample` or `add` first."
                )
            self.add(task)
        data = [encode_candidate(candidate) for candidate in candidates]
        return self._ask({"method": method, "candidates": data, **arguments})

    def _ask(self, call: Mapping[str, Any]) -> Any:
        connection = self._connected()
        try:
            send_message(connection, call)
            answer = receive_message(connection)
        except OSError as error:
            self.close()
            if isinstance(error, TimeoutError):
                raise TuningError(
                    f"`{call['method']}` of a space took more than {self._timeout_s:g} s. Increase "
                    " `timeout_s`, or leave out this task."
                ) from error
            answer = None
        if answer is None:
            self.close()
            raise TuningError(
                f"The process of a space ended during `{call['method']}`. Leave out this task, or "
                "increase `memory_bytes`."
            )
        if "error" in answer:
            raise TuningError(str(answer["error"]))
        return answer["value"]

    def _connected(self) -> socket.socket:
        if self._connection is not None:
            return self._connection
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(
                ForkServer(
                    self.language.worker,
                    environment=self.language.environment(1),
                    has_unix_sockets=True,
                )
            )
            server.start()
            directory = stack.enter_context(server.directory())
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            directory_fd = os.open(directory, os.O_RDONLY)
            try:  # socket addresses are limited in length, the directory's path is not
                listener.bind(f"/proc/self/fd/{directory_fd}/{_SOCKET}")
            finally:
                os.close(directory_fd)
            listener.listen(1)
            listener.settimeout(self._timeout_s)
            limits = Limits(default_timeout_s=_FOREVER_S, memory_bytes=self._memory_bytes)

            def run() -> None:
                with contextlib.suppress(RunError):  # closed before it started
                    server.run(
                        {
                            "kind": "space",
                            "socket": _SOCKET,
                            "space": self._kind,
                            "trust_remote_code": self._trust_remote_code,
                        },
                        directory,
                        phases=PHASES,
                        limits=limits,
                    )
                with contextlib.suppress(OSError):
                    listener.shutdown(socket.SHUT_RDWR)  # unblock `accept` if the worker has ended

            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            stack.callback(thread.join, 30.0)
            stack.callback(server.close)
            try:
                connection, _ = listener.accept()
            except OSError as error:
                raise RunError(
                    "The process of the space did not start. Check the installation of the tasks' "
                    "language."
                ) from error
            stack.enter_context(connection)
            connection.settimeout(self._timeout_s)
            greeting = receive_message(connection)
            if greeting is None:
                raise RunError(
                    "The process of the space ended while starting. Check the installation of the "
                    "tasks' language."
                )
            self.feature_set, self.mcpu = str(greeting["feature_set"]), str(greeting["mcpu"])
            self.machine_code_set = str(greeting["machine_code_set"])
            self._stack, self._connection = stack.pop_all(), connection
        return connection


def _sent(task: Task) -> dict[str, Any]:
    return {**task.to_row(), "sources": []}
