"""Tables between two markers of a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.pages import write_between
from graphnet_datasets.errors import GraphNetError


def test_only_text_between_the_markers_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Größe\n<!-- a -->\nold\n<!-- b -->\nafter\n<!-- b -->\n", encoding="utf-8")
    write_between(page, "<!-- a -->", "<!-- b -->", ["one", "two"])
    written = "Größe\n<!-- a -->\none\ntwo\n<!-- b -->\nafter\n<!-- b -->\n"
    assert page.read_text(encoding="utf-8") == written
    write_between(page, "<!-- a -->", "<!-- b -->", [])
    assert "<!-- a -->\n<!-- b -->\nafter" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["", "<!-- a -->", "<!-- b --> <!-- a -->"])
def test_a_text_without_markers_in_order_stays_as_it_was(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(GraphNetError, match=r"has no lines `<!-- a -->` and `<!-- b -->`"):
        write_between(page, "<!-- a -->", "<!-- b -->", ["new"])
    assert page.read_text() == text
