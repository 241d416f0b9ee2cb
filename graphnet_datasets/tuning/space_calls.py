"""The messages of an isolated space: length-prefixed JSON over a socket."""

from __future__ import annotations

import base64
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import TuningError
from .candidate import Candidate, Origin

MAX_MESSAGE_BYTES = 1 << 30
_LENGTH = struct.Struct("<Q")


def send_message(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Send a JSON object."""
    content = json.dumps(message).encode()
    connection.sendall(_LENGTH.pack(len(content)) + content)


def receive_message(connection: socket.socket) -> dict[str, Any] | None:
    """Return the next JSON object, or None if the connection was closed.

    Raises:
        TuningError: the message is too long or not a JSON object.
    """
    head = _receive(connection, _LENGTH.size)
    if head is None:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > MAX_MESSAGE_BYTES:
        raise TuningError(
            f"A message between processes has {length} bytes; the limit is {MAX_MESSAGE_BYTES}. "
            "Request fewer candidates at once."
        )
    content = _receive(connection, length)
    if content is None:
        return None
    try:
        message = json.loads(content)
    except ValueError as error:
        raise TuningError(
            f"A message between processes is not JSON: {error}. Start the space again."
        ) from error
    if not isinstance(message, dict):
        raise TuningError(
            f"A message between processes must be an object, got `{type(message).__name__}`. "
            "Start the space again."
        )
    return message


def _receive(connection: socket.socket, length: int) -> bytes | None:
    content = bytearray()
    while len(content) < length:
        chunk = connection.recv(min(length - len(content), 1 << 20))
        if not chunk:
            return None
        content += chunk
    return bytes(content)


def encode_candidate(candidate: Candidate | None) -> list[Any] | None:
    """Encode a candidate as JSON data.

    >>> candidate = Candidate("a1", "[[], []]", Origin.RANDOM)
    >>> decode_candidate(encode_candidate(candidate)) == candidate
    True
    """
    if candidate is None:
        return None
    return [candidate.task_id, candidate.trace_json, str(candidate.origin)]


def decode_candidate(data: Any) -> Candidate | None:
    """Decode the data of `encode_candidate`."""
    return None if data is None else Candidate(str(data[0]), str(data[1]), Origin(data[2]))


def encode_array(array: np.ndarray | None) -> dict[str, Any] | None:
    """Encode an array as JSON data.

    >>> decode_array(encode_array(np.ones((1, 2), np.float32))).tolist()
    [[1.0, 1.0]]
    """
    if array is None:
        return None
    content = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": str(array.dtype), "shape": list(array.shape), "content": content}


def decode_array(data: Mapping[str, Any]) -> np.ndarray:
    """Decode the data of `encode_array`."""
    dtype = {"float32": np.float32, "int64": np.int64}[data["dtype"]]
    return np.frombuffer(base64.b64decode(data["content"]), dtype).reshape(data["shape"]).copy()
