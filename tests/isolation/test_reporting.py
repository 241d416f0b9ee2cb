from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.isolation import reporting
from graphnet_datasets.isolation.reporting import (
    MAX_MESSAGE_BYTES,
    LogKeeper,
    MessageReader,
    Reporter,
)

MESSAGES = st.lists(
    st.dictionaries(st.text(), st.none() | st.integers() | st.floats(allow_nan=False) | st.text()),
    max_size=5,
)


@given(MESSAGES, st.integers(1, 40))
def test_messages_survive_any_cutting_of_the_stream(messages: list, size: int) -> None:
    read_end, write_end = os.pipe()
    try:
        for message in messages:
            Reporter(write_end).send(message)
        os.write(write_end, b"#")
        data = os.read(read_end, 2**20)[:-1]
    finally:
        os.close(read_end)
        os.close(write_end)
    reader = MessageReader()
    received = []
    for start in range(0, len(data), size):
        received += reader.feed(data[start : start + size])
    assert received == messages
    assert reader.problem is None


def test_only_lines_with_the_key_are_messages() -> None:
    reader = MessageReader("k1")
    assert reader.feed(b'k1{"a": 1}\n') == [{"a": 1}]
    assert reader.feed(b'{"a": 2}\n') == []
    assert reader.problem == "The job sent a message that is not a JSON object."


@given(st.binary(min_size=1, max_size=300))
def test_no_bytes_make_the_reader_raise(data: bytes) -> None:
    reader = MessageReader()
    for message in reader.feed(data):
        assert isinstance(message, dict)


def test_a_deeply_nested_message_is_refused() -> None:
    reader = MessageReader()
    assert reader.feed(b"[" * 100_000 + b"\n") == []
    assert reader.problem == "The job sent a message that is not a JSON object."


def test_a_message_without_an_end_is_refused() -> None:
    reader = MessageReader()
    block = b" " * 2**23
    for _ in range(MAX_MESSAGE_BYTES // len(block) + 1):
        reader.feed(block)
    assert reader.problem == f"The job sent a message of more than {MAX_MESSAGE_BYTES} bytes."


@given(st.lists(st.binary(max_size=30), max_size=10), st.integers(2, 60))
def test_the_log_keeps_its_ends_and_never_more_than_its_limit(
    pieces: list[bytes], limit: int
) -> None:
    keeper = LogKeeper(limit)
    for piece in pieces:
        keeper.feed(piece)
    everything = b"".join(pieces)
    assert keeper.num_bytes == len(everything)
    if len(everything) <= limit - limit % 2:
        assert keeper.text() == everything.decode(errors="replace") or not everything.isascii()
    kept = bytes(keeper._head) + bytes(keeper._tail)
    assert len(kept) <= limit
    assert everything.startswith(bytes(keeper._head))
    assert everything.endswith(bytes(keeper._tail))


def test_the_messages_of_a_job_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "MAX_TOTAL_BYTES", 100)
    reader = MessageReader()
    received = [message for _ in range(50) for message in reader.feed(b'{"a": 1}\n')]
    assert len(received) == 11
    assert reader.problem == "The job sent messages of more than 100 bytes."
