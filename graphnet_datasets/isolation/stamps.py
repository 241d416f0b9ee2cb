"""Moments in a job, timestamped by the kernel.

A job runs code that may replace every clock and every variable in its process. So it sends a short
datagram at each moment, which the kernel timestamps on sending (SO_TIMESTAMPNS). The parent reads
the datagrams later; a busy machine delays the reading but does not change the timestamps.
"""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import termios
import time
from typing import NamedTuple

_SO_TIMESTAMPNS = getattr(socket, "SO_TIMESTAMPNS", 35)  # missing in `socket` before Python 3.14
_TIMESPEC = struct.Struct("@qq")
_MAX_DATAGRAM_BYTES = 256
_BUFFER_BYTES = 2**22
"""Requested size; the kernel grants at most its `net.core.wmem_max`, about 500 datagrams."""
_ROOM_SHARE = 0.5
_POLL_S = 0.001
_MAX_WAIT_S = 5.0
MAX_STAMPS = 2_000_000

PHASE_PREFIX = "phase "
"""Prefix of the stamp that marks the start of a phase."""


class Stamp(NamedTuple):
    """A label sent by a job and its time in nanoseconds of the reader's clock."""

    label: str
    at_ns: int


def stamp_sockets() -> tuple[socket.socket, socket.socket]:
    """Return the parent's and the job's end of a socket whose datagrams the kernel timestamps."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    with contextlib.suppress(OSError):  # the fallback is the reader's clock, see `StampReader`
        ours.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    return ours, theirs


class StampSender:
    """The job's end. `key` precedes each label, so that forged datagrams are ignored.

    Its functions are bound at creation, as in `Reporter`.
    """

    def __init__(self, fd: int, key: str = "") -> None:
        sender = socket.socket(fileno=fd)
        sender.setblocking(True)
        self._socket = sender
        self.send = sender.send
        self._prefix = key.encode()
        self._room = int(_ROOM_SHARE * sender.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))

    def encode(self, label: str) -> bytes:
        """Encode a label in advance as a datagram for `send`, to save time at that moment.

        A label has at most 128 ASCII characters.
        """
        return self._prefix + label.encode()

    def wait_for_room(self) -> None:
        """Wait until the parent has read most datagrams, so that `send` does not block."""
        deadline_s = time.monotonic() + _MAX_WAIT_S
        while self._num_unread_bytes() > self._room and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)

    def close(self) -> None:
        """Close the job's end."""
        self._socket.close()

    def _num_unread_bytes(self) -> int:
        unread = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, b"\0" * 4)
        return int.from_bytes(unread, "little")


class StampReader:
    """The parent's end; `problem` describes a malformed datagram.

    If the kernel does not timestamp datagrams, `is_kernel_time` becomes false and times are those
    of reading.

    >>> ours, theirs = stamp_sockets()
    >>> sender, reader = StampSender(theirs.detach()), StampReader(ours)
    >>> _ = sender.send(sender.encode("begin"))
    >>> _ = sender.send(sender.encode("end"))
    >>> reader.drain()
    2
    >>> begin, end = reader.stamps
    >>> begin.label, end.label, 0 < end.at_ns - begin.at_ns < 10**9
    ('begin', 'end', True)
    >>> reader.close(), sender.close()
    (None, None)
    """

    def __init__(self, ours: socket.socket, key: str = "") -> None:
        self._socket, self._key = ours, key.encode()
        self.stamps: list[Stamp] = []
        self.problem: str | None = None
        self.is_kernel_time = True

    def drain(self) -> int:
        """Read all pending datagrams and return the number of new stamps."""
        num_before = len(self.stamps)
        while self.problem is None:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(_MAX_DATAGRAM_BYTES, 64)
            except (BlockingIOError, ConnectionResetError):
                break
            if not data:
                break
            if not data.startswith(self._key) or len(data) == _MAX_DATAGRAM_BYTES:
                self.problem = "The job sent a stamp that is not one of ours."
            elif len(self.stamps) >= MAX_STAMPS:
                self.problem = f"The job sent more than {MAX_STAMPS} stamps."
            else:
                label = data[len(self._key) :].decode("ascii", errors="replace")
                self.stamps.append(Stamp(label, self._time_of(ancillary)))
        return len(self.stamps) - num_before

    def close(self) -> None:
        """Close the parent's end."""
        self._socket.close()

    def _time_of(self, ancillary: list[tuple[int, int, bytes]]) -> int:
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = _TIMESPEC.unpack(data[: _TIMESPEC.size])
                return seconds * 10**9 + nanoseconds
        self.is_kernel_time = False
        return time.monotonic_ns()
