from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphnet_datasets.benchmark.child.kept_outputs import MIN_KEPT, KeptOutputs, most_kept
from graphnet_datasets.benchmark.handover import MAX_JUDGED, MAX_OUTPUTS

CALLS = st.lists(st.lists(st.binary(max_size=12), max_size=3), min_size=1, max_size=6)


@given(CALLS, st.integers(0, 40))
def test_kept_outputs_equal_the_originals(calls: list[list[bytes]], num_bytes: int) -> None:
    room = KeptOutputs(len(calls), num_bytes)
    given_ = [[("uint8", [len(each)], each) for each in call] for call in calls]
    kept = [room.put(place, outputs) for place, outputs in enumerate(given_)]
    assert [[bytes(each) for _, _, each in outputs] for outputs in kept] == calls
    assert [[each[:2] for each in outputs] for outputs in kept] == [
        [each[:2] for each in outputs] for outputs in given_
    ]


def test_kept_outputs_are_copies() -> None:
    elements = bytearray(b"abcd")
    for num_bytes in (4, 3):
        ((_, _, kept),) = KeptOutputs(1, num_bytes).put(0, [("uint8", [4], elements)])
        before = bytes(kept)
        elements[0] ^= 1
        assert bytes(kept) == before


def test_a_slot_is_reused_and_others_stay() -> None:
    room = KeptOutputs(2, 2)
    first, second, third = (
        room.put(place, [("uint8", [2], each)])[0][2]
        for place, each in enumerate((b"ab", b"cd", b"ef"))
    )
    assert (bytes(first), bytes(second), bytes(third)) == (b"ef", b"cd", b"ef")


def test_as_many_are_kept_as_there_is_room_for() -> None:
    assert most_kept([b"small"]) == MAX_JUDGED
    assert most_kept([b""] * MAX_OUTPUTS) == MIN_KEPT
