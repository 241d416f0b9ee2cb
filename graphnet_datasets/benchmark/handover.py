"""The protocol between a worker and its parent: phases, file names and the format of outputs.

Outputs are raw elements in a file; a message contains the dtype, shape and position of each output.
The parent validates everything, because the process that wrote the file ran a candidate.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import mmap
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..frameworks.outputs import excerpt_of
from ..inputs.arrays import STORAGE
from ..sample.vocabulary import ITEM_SIZE_BYTES
from ..schema import PHASES as ALL_PHASES
from .judging.correctness import Drawn, Output

_blake2b = hashlib.blake2b
PHASES = tuple(phase for phase in ALL_PHASES if phase != "judge")
"""The phases of a worker; judging happens in the parent."""
PROFILE_PHASES = ("profiler", "profile")
"""The phases after the timed calls: starting the profiler, and profiled calls."""
CANDIDATE_PHASES = ("load", "baseline", "first", "compile", "run", *PROFILE_PHASES)
"""The phases of a worker that runs a candidate; all judged data precedes `PROFILE_PHASES`.

In `first` the first calls of eager are timed, after the untimed ones in `baseline`.
"""
RECORDED_PHASES = {"first": "baseline", "profiler": "run", "profile": "run"}
"""The phases of records for those phases of a worker that records do not have."""
EAGER_PHASES = (*PHASES, "oracle")
"""The phases of the worker that computes the reference outputs."""

FIRST, AGAIN, ORACLE = "first.bin", "again.bin", "oracle.bin"
"""Files of outputs on input set 0: the first call, a repeated call, and a call in float64."""
JUDGED = "judged.bin"
"""The file of an arm's outputs in the judged calls, concatenated."""
VARIED = "varied.bin"
"""The file of an arm's outputs in calls with other sizes and numbers."""
DRAWS = "draws.bin"
"""The file of an arm's outputs in repeated calls on the same inputs with different seeds."""
WRITTEN = "written inputs"
"""The message with the names of the inputs that eager changes."""
KEYS = "keys.bin"
"""The file of the keys that the graph sorts, on input set 0 and in the judged calls."""
MAX_KEYS_BYTES = 2**28
"""The size of `KEYS`, in bytes, beyond which keys of further calls are not stored."""
MAX_JUDGED = 512
"""The maximum number of timed calls whose outputs are judged; larger numbers are sampled."""
MAX_WHOLE = 3
"""The number of timed calls of which all elements are judged; others are judged by an excerpt."""
MAX_SET = 2**31
"""The upper bound (exclusive) of input set numbers."""

LAYOUT, LOOK = "<", "="
"""Prefixes of the stamps before inputs are prepared for a call, and after its outputs are
inspected."""

COMPILERS_VARIABLE = "GRAPHNET_DATASETS_COMPILERS"
"""The comma-separated names of the compilers that a fork server should prepare."""
OPTIONS_VARIABLE = "GRAPHNET_DATASETS_OPTIONS"
"""The options of these compilers as JSON; a compiler that rejects them is not prepared."""

MAX_OUTPUTS = 10_000
MAX_DIMENSIONS = 64


def judged_message(number: int) -> str:
    """Return the message key that describes the outputs of a judged call."""
    return f"outputs judged {number}"


def varied_message(number: int, frozen: int | None = None) -> str:
    """Return the message key that describes the outputs of a call with other sizes.

    `frozen` numbers eager's outputs with symbols frozen to the sizes of an earlier call.
    """
    return f"outputs varied {number}" if frozen is None else f"outputs varied {number} {frozen}"


def keys_message(number: int) -> str:
    """Return the message key that describes the sorted keys of a call, counted from 0."""
    return f"outputs keys {number}"


@dataclasses.dataclass(frozen=True, slots=True)
class JudgedCall:
    """A timed call whose outputs are judged: its input set and the start of its excerpt.

    `start` is None if all elements are judged (see `frameworks.outputs.excerpt_of`).
    """

    set_index: int
    start: int | None
    is_candidate_first: bool

    def to_json(self) -> list[Any]:
        """Return the call in the form that `read_judged` reads."""
        return [self.set_index, self.start, self.is_candidate_first]


def read_judged(value: Any) -> list[JudgedCall]:
    """Return the judged calls that a worker reported.

    Raises:
        HandoverError: the message does not describe such calls.

    >>> read_judged([[7, None, True]])
    [JudgedCall(set_index=7, start=None, is_candidate_first=True)]
    """
    if not isinstance(value, list) or len(value) > MAX_JUDGED + MAX_WHOLE:
        raise HandoverError("The worker did not report the calls to be judged.")
    calls = []
    for item in value:
        if not isinstance(item, list) or len(item) != 3:
            raise HandoverError("The worker did not report the calls to be judged.")
        set_index, start, is_candidate_first = item
        numbers = [set_index, 0 if start is None else start]
        if not all(type(number) is int and 0 <= number <= MAX_SET for number in numbers):
            raise HandoverError("A call to be judged has a number that is out of range.")
        calls.append(JudgedCall(set_index, start, is_candidate_first is True))
    return calls


@dataclasses.dataclass(frozen=True, slots=True)
class DrawnCalls:
    """Calls on one input set with different seeds, and the excerpt of their outputs.

    Call `i` of `count` uses the seed of the set plus `i`, starting at 1. The elements of a call's
    outputs are those of `excerpt_of(size, num_outputs, start, most)`.
    """

    set_index: int
    start: int
    count: int
    most: int


def read_drawn(message: Any) -> DrawnCalls:
    """Return the calls that a worker reported.

    Raises:
        HandoverError: the message does not describe such calls.

    >>> read_drawn({"set_index": 7, "start": 0, "count": 64, "most": 100})
    DrawnCalls(set_index=7, start=0, count=64, most=100)
    """
    names = [field.name for field in dataclasses.fields(DrawnCalls)]
    numbers: list[Any] = [None]
    if isinstance(message, dict):
        numbers = [message.get(name) for name in names]
    if not all(type(number) is int and 0 <= number <= MAX_SET for number in numbers):
        raise HandoverError("The worker did not report its repeated calls. Run the sample again.")
    return DrawnCalls(*numbers)


def read_written(message: Any) -> list[str]:
    """Return the names of the inputs that eager changes, or [] if the worker did not report any.

    >>> read_written(["buffer_0"]), read_written({"buffer_0": 1})
    (['buffer_0'], [])
    """
    return [str(name) for name in message] if isinstance(message, list) else []


def read_draws(path: Path, described: Any, calls: DrawnCalls) -> list[Drawn]:
    """Return each output in all of the calls.

    Raises:
        HandoverError: the description does not match the file.
    """
    _check_length(described)
    places = [_place(output) for output in described]
    data = np.frombuffer(_map(path), np.uint8)
    if calls.count < 1 or data.size % calls.count:
        raise HandoverError("The file of draws ends within a draw.")
    draws = data.reshape(calls.count, -1)
    outputs = []
    for dtype, shape, offset in places:
        size = math.prod(shape)
        part = excerpt_of(size, len(places), calls.start, calls.most)
        storage = np.dtype(STORAGE[dtype])
        num_bytes = len(range(size)[part]) * ITEM_SIZE_BYTES[dtype]
        if offset + num_bytes > draws.shape[1]:
            raise HandoverError(f"The file of draws ends before an output of shape {shape}.")
        chosen = np.ascontiguousarray(draws[:, offset : offset + num_bytes])
        elements = np.frombuffer(chosen.data, storage).reshape(calls.count, -1)
        outputs.append(Drawn(dtype, shape, elements, part.step))
    return outputs


def digest_of(elements: Iterable[Any]) -> str:
    """Return a hash of the elements of an excerpt, a sequence of byte arrays.

    >>> digest_of([b"ab", b"c"]) == digest_of([b"abc"])
    True
    """
    digest = _blake2b(digest_size=8)
    for data in elements:
        digest.update(data)
    return digest.hexdigest()


class HandoverError(Exception):
    """The data that a worker handed over is invalid or does not match its description."""


def read_outputs(path: Path, described: Any) -> list[Output]:
    """Return the whole outputs in a file as a memory map; the file may be deleted afterwards.

    Raises:
        HandoverError: the description does not match the file.
    """
    _check_length(described)
    return _read(_map(path), described, None)


def read_all_outputs(
    path: Path, described: Sequence[Any], starts: Sequence[int | None]
) -> list[list[Output]]:
    """Return the outputs of several calls in one file, as `described`.

    `starts` are the starts of their excerpts, whose elements are flat, or None for whole outputs.

    Raises:
        HandoverError: a description does not match the file.
    """
    for description in described:
        _check_length(description)
    data = _map(path)
    return [
        _read(data, description, start)
        for description, start in zip(described, starts, strict=True)
    ]


def _check_length(described: Any) -> None:
    if not isinstance(described, list) or len(described) > MAX_OUTPUTS:
        raise HandoverError("The worker did not describe its outputs.")


def _read(data: mmap.mmap | bytes, described: list[Any], start: int | None) -> list[Output]:
    places = [_place(description) for description in described]
    outputs = []
    for dtype, shape, offset in places:
        size = math.prod(shape)
        part = excerpt_of(size, len(places), start)
        count = len(range(size)[part])
        if count and offset + count * ITEM_SIZE_BYTES[dtype] > len(data):
            raise HandoverError(f"The file of outputs ends before an output of shape {shape}.")
        elements = (
            np.frombuffer(data, STORAGE[dtype], count, offset)
            if count
            else np.empty(0, STORAGE[dtype])
        )
        if start is None:
            outputs.append(Output(dtype, elements.reshape(shape)))
        else:
            outputs.append(Output(dtype, elements, shape, part))
    return outputs


def _place(described: Any) -> tuple[str, tuple[int, ...], int]:
    if not isinstance(described, dict):
        raise HandoverError("The worker did not describe its outputs.")
    dtype, shape, offset = (described.get(key) for key in ("dtype", "shape", "offset"))
    if not isinstance(dtype, str) or dtype not in STORAGE:
        raise HandoverError(
            f"An output has the dtype {str(dtype)[:40]!r}, which a sample cannot represent."
        )
    numbers: list[Any] = [offset, *(shape if isinstance(shape, list) else [None])]
    if len(numbers) > MAX_DIMENSIONS or not all(
        type(number) is int and 0 <= number < 2**48 for number in numbers
    ):
        raise HandoverError(
            "An output has a shape or a position that does not consist of integers."
        )
    return dtype, tuple(numbers[1:]), numbers[0]


def _map(path: Path) -> mmap.mmap | bytes:
    """Map a regular file; links and pipes are rejected, since they could redirect or block us."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise HandoverError(f"The file of outputs cannot be read: {error.strerror}.") from error
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise HandoverError("The file of outputs is not a regular file.")
        if status.st_size == 0:
            return b""
        return mmap.mmap(fd, status.st_size, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)
    finally:
        os.close(fd)
