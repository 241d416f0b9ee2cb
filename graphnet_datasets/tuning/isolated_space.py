"""TVM's space for a process that does not import TVM: asked for in an isolated worker."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from ..errors import RunError, TuningError
from ..isolation import ForkServer, Limits
from .candidate import Candidate, ProgramGraph
from .interfaces import Space
from .knobs import trace_knobs
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
"""Candidates whose features are asked for together: a few megabytes."""


class IsolatedSpace(Space):
    """The schedules of tasks that strangers wrote: TVM reads them in a process that may crash.

    `kind` is `sketches`, those of MetaSchedule, or `templates`. It starts with the first call and
    again after a crash. `timeout_s` bounds each call. Use it as a context manager, or call `close`.
    Tasks and traces pass the verifier unless `trust_remote_code`.
    """

    def __init__(
        self,
        *,
        kind: str = "sketches",
        timeout_s: float = 300.0,
        memory_bytes: int = 4 * _GIB,
        trust_remote_code: bool = False,
    ) -> None:
        self._trust_remote_code = trust_remote_code
        self._kind, self._timeout_s, self._memory_bytes = kind, timeout_s, memory_bytes
        self._tasks: dict[str, Task] = {}
        self._known: set[str] = set()
        self._stack: contextlib.ExitStack | None = None
        self._connection: socket.socket | None = None
        self.feature_set = ""
        self.mcpu = ""
        """This machine's processor, as LLVM names it; known once the worker has started."""

    def __enter__(self) -> Self:
        """Start the worker."""
        self._connected()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the worker."""
        self.close()

    def close(self) -> None:
        """End the worker; the next call starts another one."""
        stack, self._stack, self._connection = self._stack, None, None
        self._known.clear()
        if stack is not None:
            stack.close()

    def add(self, task: Task) -> None:
        """Make a task known, so that its candidates can be changed and described.

        Raises:
            TuningError: TVM cannot read it, or makes no schedules of it.
        """
        self._tasks[task.task_id] = task
        self._connected()
        if task.task_id not in self._known:
            self._ask({"method": "add", "task": _sent(task)})
            self._known.add(task.task_id)

    def sample(self, task: Task, n: int, seed: int) -> list[Candidate]:
        """Return up to `n` candidates drawn at random, without doubles."""
        self.add(task)
        call = {"method": "sample", "task": _sent(task), "n": n, "seed": seed}
        return [each for data in self._ask(call) if (each := decode_candidate(data)) is not None]

    def mutate(self, candidate: Candidate, seed: int) -> Candidate | None:
        """Return a candidate with one decision changed, None where the change is not legal."""
        return decode_candidate(self._of("mutate", [candidate], seed=seed))

    def crossover(self, first: Candidate, second: Candidate, seed: int) -> Candidate | None:
        """Return a child of two candidates of one sketch, None where there is none."""
        return decode_candidate(self._of("crossover", [first, second], seed=seed))

    def features(self, candidate: Candidate) -> np.ndarray:
        """Return float32 [stores, 164]."""
        (found,) = self.features_of([candidate])
        if found is None:
            raise TuningError("The trace of a candidate does not replay on its task.")
        return found

    def features_of(self, candidates: Sequence[Candidate]) -> list[np.ndarray | None]:
        """Return the features of many, None for those that cannot be scheduled."""
        found: list[np.ndarray | None] = []
        for start in range(0, len(candidates), _CHUNK):
            data = self._of("features_of", candidates[start : start + _CHUNK])
            found += [None if each is None else decode_array(each) for each in data]
        return found

    def enumerate(self, task: Task) -> list[Candidate] | None:
        """Return all candidates of a task where the space is one of templates, otherwise None."""
        self.add(task)
        data = self._ask({"method": "enumerate", "task": _sent(task)})
        if data is None:
            return None
        return [each for one in data if (each := decode_candidate(one)) is not None]

    def knobs(self, candidate: Candidate) -> Mapping[str, float]:
        """Return the decisions in the trace's text."""
        return trace_knobs(candidate.trace_json)

    def graph(self, candidate: Candidate) -> ProgramGraph:
        """Return the scheduled program as a graph."""
        return ProgramGraph(*map(decode_array, self._of("graph", [candidate])))

    def _of(self, method: str, candidates: Sequence[Candidate], **arguments: Any) -> Any:
        for each in candidates:
            task = self._tasks.get(each.task_id)
            if task is None:
                raise TuningError(
                    f"The task `{each.task_id}` of a candidate is not known to the space. Pass "
                    "its task to `sample` or `add` first."
                )
            self.add(task)
        data = [encode_candidate(each) for each in candidates]
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
                    f"TVM took more than {self._timeout_s:g} s for `{call['method']}` of a space."
                ) from error
            answer = None
        if answer is None:
            self.close()
            raise TuningError(f"TVM's process ended in `{call['method']}` of a space.")
        if "error" in answer:
            raise TuningError(str(answer["error"]))
        return answer["value"]

    def _connected(self) -> socket.socket:
        if self._connection is not None:
            return self._connection
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(
                ForkServer(
                    "graphnet_datasets.tuning.server",
                    environment={"TVM_NUM_THREADS": "1"},
                    has_unix_sockets=True,
                )
            )
            server.start()
            directory = stack.enter_context(server.directory())
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            place = os.open(directory, os.O_RDONLY)
            try:  # a path in a deep directory would not fit into the address
                listener.bind(f"/proc/self/fd/{place}/{_SOCKET}")
            finally:
                os.close(place)
            listener.listen(1)
            listener.settimeout(self._timeout_s)
            limits = Limits(default_timeout_s=_FOREVER_S, memory_bytes=self._memory_bytes)

            def run() -> None:
                with contextlib.suppress(RunError):  # closed before it began
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
                    listener.shutdown(socket.SHUT_RDWR)  # nobody will connect any more

            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            stack.callback(thread.join, 30.0)
            stack.callback(server.close)
            try:
                connection, _ = listener.accept()
            except OSError as error:
                raise RunError("The process of TVM's space did not start.") from error
            stack.enter_context(connection)
            connection.settimeout(self._timeout_s)
            hello = receive_message(connection)
            if hello is None:
                raise RunError("The process of TVM's space ended as it started.")
            self.feature_set, self.mcpu = str(hello["feature_set"]), str(hello["mcpu"])
            self._stack, self._connection = stack.pop_all(), connection
        return connection


def _sent(task: Task) -> dict[str, Any]:
    return {**task.to_row(), "sources": []}
