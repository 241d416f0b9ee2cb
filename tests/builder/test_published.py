"""The table of published parameter counts."""

from __future__ import annotations

import pytest

from builder.published import PATH, SOURCES, TOLERANCE, Published, agreements, read_published


def test_every_count_has_a_known_source_and_a_last_digit_below_the_tolerance() -> None:
    published = read_published()
    lines = PATH.read_text().splitlines()[1:]
    assert len(published) == len(lines) >= 300
    for line in lines:
        name, count, unit, source = line.split(",")
        assert source in SOURCES, name
        assert int(unit) in (1, 10**6), name
        rounding = 0.5 * 10 ** -len(count.partition(".")[2]) if unit != "1" else 0
        assert rounding <= TOLERANCE * float(count), name
    assert {count.source for count in published.values()} == set(SOURCES)


@pytest.mark.parametrize(("num_params", "is_equal"), [(995, True), (1005, True), (1006, False)])
def test_counts_agree_up_to_the_tolerance(num_params: int, is_equal: bool) -> None:
    assert Published(1000, 1, "torchvision").is_equal(num_params) is is_equal


def test_rows_without_a_published_count_are_skipped() -> None:
    name, published = next(iter(read_published().items()))
    rows = [("unknown", 1), (name, None), (name, int(published.count * published.unit))]
    assert agreements(rows) == [False, True]
