"""Modules whose calls run in a sandboxed worker process (`materialize(sample, isolated=True)`)."""

from __future__ import annotations

import concurrent.futures
import json
import math
import os
import select
import stat
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import IsolatedCallError, MaterializeError, RunError
from ..inputs.storage import STORAGE
from ..isolation import ForkServer, Limits, Outcome
from ..sample import Sample
from ..sample.vocabulary import ITEM_SIZE_BYTES
from ..schema.sample_files import write_sample
from .contract import FRAMEWORK_VARIABLE, module
from .input_limits import memory_limit
from .outputs import OutputTypeError
from .runtime import make_runtime

WORKER = "graphnet_datasets.frameworks.isolated_worker"
PHASES = ("load",)
REQUESTS, ANSWERS = "requests", "answers"
"""The named pipes of a job, with one JSON object per line."""
ARGUMENTS, OUTPUTS = "arguments", "outputs"
"""The files with the elements of tensors."""

_FOREVER_S = 10.0**9
_MAX_ANSWER_BYTES = 2**22
_MAX_DIMENSIONS = 64
_POLL_S = 0.2
Values = list[tuple[str, Any]]


class IsolatedModule:
    """A sample that runs in its own sandboxed process and is called like a module.

    Arguments are passed by position or by canonical name, as for an ordinary materialized module.
    They arrive in the worker as contiguous tensors. A graph that writes to its inputs leaves the
    caller's tensors unchanged. Outputs are on the CPU. The process starts with the first call. It
    ends with `close`, at the end of a `with` block or when this object is garbage collected.

    Args:
        sample: the sample to run.
        memory_limit_bytes: memory of the process in addition to that of the framework itself.
        options: arguments of `materialize` in the worker.
    """

    def __init__(
        self, sample: Sample, memory_limit_bytes: int | None, options: Mapping[str, Any]
    ) -> None:
        self.sample = sample
        self._options = dict(options)
        self._limits = Limits(
            default_timeout_s=_FOREVER_S, memory_bytes=memory_limit(memory_limit_bytes)
        )
        self._worker: _Worker | None = None

    def __enter__(self) -> IsolatedModule:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the sample once.

        Raises:
            IsolatedCallError: the graph failed, or its process crashed or exceeded a limit.
            MaterializeError: the worker cannot make the sample runnable.
        """
        if self._worker is None:
            self._worker = _Worker(self.sample, self._options, self._limits)
        try:
            return self._worker.call(arguments, named)
        except (IsolatedCallError, RunError):
            if not self._worker.is_alive:
                self.close()
            raise

    def close(self) -> None:
        """Terminate the process. The next call starts a new process."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


class _Worker:
    """A running worker job and the pipes that connect to it."""

    def __init__(self, sample: Sample, options: Mapping[str, Any], limits: Limits) -> None:
        self._framework = sample.framework
        self._runtime = make_runtime(sample.framework, "cpu", len(os.sched_getaffinity(0)))
        self._to_tensor = module(sample.framework, "tensors").to_tensor
        self._memory_bytes = limits.memory_bytes or 0
        self._server = ForkServer(WORKER, environment={FRAMEWORK_VARIABLE: sample.framework})
        self._context = self._server.directory()
        self._directory = self._context.__enter__()
        write_sample(sample, self._directory)
        self._pipes = [self._make_pipe(name) for name in (REQUESTS, ANSWERS)]
        self._pending = b""
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._outcome: concurrent.futures.Future[Outcome] = self._thread.submit(
            self._server.run, {"options": dict(options)}, self._directory,
            phases=PHASES, limits=limits,
        )  # fmt: skip
        self._end = weakref.finalize(
            self, _end, self._server, self._thread, self._pipes, self._context
        )
        problem = self._read().get("problem")
        if problem:
            self.close()
            raise MaterializeError(str(problem))

    @property
    def is_alive(self) -> bool:
        """True if the job is still running."""
        return not self._outcome.done()

    def call(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Send the arguments and return the outputs."""
        names = [None] * len(arguments) + [*named]
        values = [*arguments, *named.values()]
        try:
            described = self._runtime.write_outputs(values, self._directory / ARGUMENTS)
        except OutputTypeError as error:
            raise IsolatedCallError(
                "An argument of the isolated module is not a dense tensor on the CPU or a number. "
                "Pass one tensor or number for each input."
            ) from error
        if len(described) != len(values):
            raise IsolatedCallError(
                "An argument of the isolated module is a collection or None. Pass one tensor or "
                "number for each input."
            )
        request = {"names": names, "values": described, "kinds": list(map(kind_of, values))}
        self._write(request)
        answer = self._read()
        if "error" in answer:
            raise IsolatedCallError(f"The graph failed in its process: {answer['error']}")
        try:
            return self._read_outputs(answer)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            self.close()
            raise IsolatedCallError(
                "The worker process described outputs of another form than its own."
            ) from error

    def _read_outputs(self, answer: Mapping[str, Any]) -> Any:
        tensors = [
            as_value(self._to_tensor, array, dtype, kind)
            for (dtype, array), kind in zip(
                read_tensors(self._directory / OUTPUTS, answer.get("values"), self._memory_bytes),
                _list_of(answer.get("kinds"), str),
                strict=True,
            )
        ]
        return rebuild(answer.get("structure"), tensors)

    def close(self) -> None:
        """Terminate the job and its server."""
        self._end()

    def _make_pipe(self, name: str) -> int:
        os.mkfifo(self._directory / name, 0o600)
        return os.open(self._directory / name, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)

    def _write(self, message: Mapping[str, Any]) -> None:
        data = memoryview(json.dumps(message).encode() + b"\n")
        while data:
            _, writable, _ = select.select([], [self._pipes[0]], [], _POLL_S)
            if writable:
                data = data[os.write(self._pipes[0], data[:4096]) :]
            self._check_alive()

    def _read(self) -> dict[str, Any]:
        while b"\n" not in self._pending:
            readable, _, _ = select.select([self._pipes[1]], [], [], _POLL_S)
            if readable:
                self._pending += os.read(self._pipes[1], 2**16)
            else:
                self._check_alive()
            if len(self._pending) > _MAX_ANSWER_BYTES:
                self.close()
                raise IsolatedCallError("The worker process sent a response above the size limit.")
        line, _, self._pending = self._pending.partition(b"\n")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            self.close()
            raise IsolatedCallError("The worker process sent an answer that is not JSON.")
        return answer

    def _check_alive(self) -> None:
        if self._outcome.done():
            outcome = self._outcome.result()
            message = (outcome.error or {}).get("message", "") or outcome.log[-300:].strip()
            raise IsolatedCallError(f"The worker process ended ({outcome.ending}): {message}")


def _end(
    server: ForkServer,
    thread: concurrent.futures.ThreadPoolExecutor,
    pipes: list[int],
    context: Any,
) -> None:
    server.close()
    thread.shutdown()
    for pipe in pipes:
        os.close(pipe)
    context.__exit__(None, None, None)


def kind_of(value: Any) -> str:
    """Return the type name of a Python number, or `tensor`."""
    return type(value).__name__ if type(value) in (bool, int, float, complex) else "tensor"


def as_value(to_tensor: Any, array: np.ndarray, dtype: str, kind: str) -> Any:
    """Return a tensor, or a Python number if `kind` names a number type."""
    return to_tensor(array, dtype) if kind == "tensor" else array.reshape(()).item()


def read_tensors(path: Path, described: Any, most_bytes: int) -> Values:
    """Return the dtype and the elements of each tensor in a file.

    The file is read instead of mapped, since its writer may still be running and could truncate it.

    Raises:
        IsolatedCallError: the description does not match the file.
    """
    problem = IsolatedCallError(
        "The worker process described outputs that are missing in its file."
    )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
                raise problem
            data = file.read(status.st_size)
    except OSError as error:
        raise problem from error
    tensors: Values = []
    for entry in _list_of(described, dict):
        dtype, shape, offset = (entry.get(name) for name in ("dtype", "shape", "offset"))
        numbers = [offset, *(_list_of(shape, int))]
        if dtype not in STORAGE or len(numbers) > _MAX_DIMENSIONS or min(numbers) < 0:
            raise problem
        size = math.prod(numbers[1:])
        if numbers[0] + size * ITEM_SIZE_BYTES[dtype] > len(data):
            raise problem
        elements = np.frombuffer(data, STORAGE[dtype], size, numbers[0] if size else 0)
        tensors.append((dtype, elements.reshape(numbers[1:])))
    return tensors


def describe_structure(outputs: Any, indices: Any) -> Any:
    """Return the structure of nested outputs as JSON, with each leaf replaced by its index."""
    if isinstance(outputs, list | tuple):
        kind = "list" if type(outputs) is list else "tuple"
        return {kind: [describe_structure(item, indices) for item in outputs]}
    if isinstance(outputs, dict):
        return {"dict": [[key, describe_structure(outputs[key], indices)] for key in outputs]}
    return None if outputs is None else next(indices)


def rebuild(structure: Any, leaves: list[Any]) -> Any:
    """Return the nested outputs for a structure from `describe_structure`.

    Raises:
        IsolatedCallError: the structure is malformed.

    >>> rebuild({"tuple": [0, None, {"list": [1]}]}, ["a", "b"])
    ('a', None, ['b'])
    """
    match structure:
        case None:
            return None
        case int() if type(structure) is int and 0 <= structure < len(leaves):
            return leaves[structure]
        case {"list": list(items)}:
            return [rebuild(item, leaves) for item in items]
        case {"tuple": list(items)}:
            return tuple(rebuild(item, leaves) for item in items)
        case {"dict": list(items)} if all(
            isinstance(item, list) and len(item) == 2 and isinstance(item[0], str | int)
            for item in items
        ):
            return {key: rebuild(value, leaves) for key, value in items}
    raise IsolatedCallError("The worker process described outputs of an unknown structure.")


def _list_of(value: Any, kind: type) -> list[Any]:
    if not isinstance(value, list) or not all(type(item) is kind for item in value):
        raise IsolatedCallError("The worker process sent an answer in an unknown format.")
    return value
