"""Tables on terminals of any width: nothing is cut, nothing wraps by itself."""

from __future__ import annotations

import pytest

from graphnet_datasets.cli import terminal

HEADS = ("name", "devices", "remark")
ROWS = [
    ("inductor", "cpu cuda", "built in"),
    ("tensorrt", "cuda", "`torch_tensorrt` is not installed (pip install 'torch-tensorrt')"),
    ("evil\x1b[2J", "", ""),
]


@pytest.mark.parametrize("columns", [30, 45, 60, 80, 10_000])
def test_a_table_folds_its_prose_and_cuts_nothing(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "width", lambda: columns)
    terminal.print_table(HEADS, ROWS)
    text = capsys.readouterr().out
    assert all(len(line) <= columns for line in text.splitlines())
    expected = " ".join(word.replace("\x1b", "\\x1b") for row in ROWS for word in row)
    assert " ".join(text.split()).endswith(" ".join(expected.split()))


def test_prose_stands_beside_where_there_is_room_and_below_where_there_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for columns, lines in ((100, 4), (45, 1 + 3 + 3)):
        monkeypatch.setattr(terminal, "width", lambda columns=columns: columns)
        terminal.print_table(HEADS, ROWS)
        assert len(capsys.readouterr().out.splitlines()) == lines
