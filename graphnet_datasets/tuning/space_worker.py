"""The process of an isolated space, which answers calls until the connection closes."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import TuningError
from .candidate import Candidate
from .interfaces import Space
from .space_calls import (
    decode_candidate,
    encode_array,
    encode_candidate,
    receive_message,
    send_message,
)
from .task import Task


def serve_space(path: Path, space: Space, mcpu: str) -> None:
    """Connect to a socket and answer calls with a space on the processor `mcpu`."""
    with socket.socket(socket.AF_UNIX) as connection:
        # Relative to the job's working directory, since socket paths are limited in length.
        connection.connect(path.name)
        names = {"feature_set": space.feature_set, "machine_code_set": space.machine_code_set}
        send_message(connection, {**names, "mcpu": mcpu})
        while (call := receive_message(connection)) is not None:
            try:
                answer: dict[str, Any] = {"value": _answer(space, call)}
            except TuningError as error:
                answer = {"error": str(error)}
            send_message(connection, answer)


def _answer(space: Space, call: Mapping[str, Any]) -> Any:
    method = call["method"]
    if method == "add":
        space.add(Task.from_row(call["task"]))
        return None
    if method == "sample":
        sampled = space.sample(Task.from_row(call["task"]), call["n"], call["seed"])
        return [encode_candidate(candidate) for candidate in sampled]
    if method == "enumerate":
        everything = space.enumerate(Task.from_row(call["task"]))
        return (
            None
            if everything is None
            else [encode_candidate(candidate) for candidate in everything]
        )
    candidates = [_candidate(data) for data in call["candidates"]]
    if method == "mutate":
        return encode_candidate(space.mutate(candidates[0], call["seed"]))
    if method == "crossover":
        return encode_candidate(space.crossover(candidates[0], candidates[1], call["seed"]))
    if method == "graph":
        return [encode_array(array) for array in space.graph(candidates[0]).arrays]
    if method == "features_of":
        return [encode_array(matrix) for matrix in space.features_of(candidates)]
    if method == "machine_code_of":
        return [encode_array(vector) for vector in space.machine_code_of(candidates)]
    raise TuningError(
        f"A space has no method `{method}`. Use the same version of the package on both sides."
    )


def _candidate(data: Any) -> Candidate:
    candidate = decode_candidate(data)
    if candidate is None:
        raise TuningError("A call to a space lacks its candidate. Pass a candidate.")
    return candidate
