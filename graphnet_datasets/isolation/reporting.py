"""Messages from a job to its parent: one JSON object per line on a dedicated pipe.

The reader validates everything, because a job can write any bytes to its end of the pipe.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ..json_text import parse_json
from .stamps import PHASE_PREFIX, StampSender

MAX_MESSAGE_BYTES = 64 * 2**20
MAX_TOTAL_BYTES = 4 * MAX_MESSAGE_BYTES
"""Maximum size of all messages of a job; the parent keeps them in memory."""
MAX_TEXT_LENGTH = 20_000


class Reporter:
    """The job's end of the pipe. `stamps`, if present, sends moments that the kernel timestamps.

    Each line begins with the secret `key`, so code that finds the pipe among the open files cannot
    forge messages. `send` binds its functions at creation, so code that replaces `json.dumps` or
    `os.write` later cannot change messages.

    >>> import os
    >>> read_end, write_end = os.pipe()
    >>> Reporter(write_end).enter("compile")
    >>> os.read(read_end, 100)
    b'{"phase": "compile"}\\n'
    """

    def __init__(self, fd: int, key: str = "", stamps: StampSender | None = None) -> None:
        write, dumps = os.write, json.dumps
        self.stamps = stamps

        def send(message: dict[str, Any]) -> None:
            view = memoryview(f"{key}{dumps(message)}\n".encode())
            while view:
                view = view[write(fd, view) :]

        self._send = send

    def enter(self, phase: str) -> None:
        """Report that the job enters `phase`, which starts that phase's timeout."""
        if self.stamps is not None:
            self.stamps.send(self.stamps.encode(PHASE_PREFIX + phase))
        self._send({"phase": phase})

    def send(self, message: dict[str, Any]) -> None:
        """Send an object as JSON; infinities and NaN are written as in Python's `json`.

        Raises:
            TypeError: JSON cannot represent the object.
        """
        self._send(message)


class MessageReader:
    """Parses messages from the bytes of a pipe; `problem` describes malformed input.

    Lines that do not begin with `key` are not messages.

    >>> reader = MessageReader()
    >>> reader.feed(b'{"phase": "lo')
    []
    >>> reader.feed(b'ad"}\\n[1]\\n')
    [{'phase': 'load'}]
    >>> reader.problem
    'The job sent a message that is not a JSON object.'
    """

    def __init__(self, key: str = "") -> None:
        self._key = key.encode()
        self._pending = bytearray()
        self._num_bytes = 0
        self.problem: str | None = None

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Parse `data` and return the complete messages; returns no messages after a problem."""
        messages: list[dict[str, Any]] = []
        if self.problem:
            return messages
        self._num_bytes += len(data)
        if self._num_bytes > MAX_TOTAL_BYTES:
            self.problem = f"The job sent messages of more than {MAX_TOTAL_BYTES} bytes."
            self._pending.clear()
            return messages
        searched = len(self._pending)
        self._pending += data
        start = 0
        while (end := self._pending.find(b"\n", max(start, searched))) >= 0:
            message = _decode(bytes(self._pending[start:end]), self._key)
            start = end + 1
            if message is None:
                self.problem = "The job sent a message that is not a JSON object."
                return messages
            messages.append(message)
        del self._pending[:start]
        if len(self._pending) > MAX_MESSAGE_BYTES:
            self.problem = f"The job sent a message of more than {MAX_MESSAGE_BYTES} bytes."
            self._pending.clear()
        return messages


class LogKeeper:
    """Keeps the beginning and end of a job's output, `limit` bytes in all.

    >>> keeper = LogKeeper(8)
    >>> keeper.feed(b"0123456789")
    >>> keeper.text()
    '0123\\n[... 2 bytes left out ...]\\n6789'
    """

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self.num_bytes = 0

    def feed(self, data: bytes) -> None:
        """Add output."""
        self.num_bytes += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._half :]
        del self._tail[: -self._half]

    def text(self) -> str:
        """Return the kept output, with a line that states how much is missing."""
        left_out = self.num_bytes - len(self._head) - len(self._tail)
        middle = f"\n[... {left_out} bytes left out ...]\n" if left_out else ""
        return self._head.decode(errors="replace") + middle + self._tail.decode(errors="replace")


def describe_error(error: BaseException) -> dict[str, str]:
    """Return the type, message and notes of an exception, even if its own methods fail.

    >>> describe_error(ValueError("too long"))
    {'type': 'ValueError', 'message': 'too long'}
    """
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ != "builtins":
        name = f"{kind.__module__}.{name}"
    try:
        text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    except Exception as problem:
        text = f"(the error's text cannot be had: {type(problem).__name__})"
    return {"type": str(name)[:200], "message": text[:MAX_TEXT_LENGTH]}


def _decode(line: bytes, key: bytes) -> dict[str, Any] | None:
    if not line.startswith(key):
        return None
    message = parse_json(line[len(key) :])
    return message if isinstance(message, dict) else None
