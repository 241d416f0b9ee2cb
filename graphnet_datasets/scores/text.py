"""Tables for terminals and notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

from ..terminal import printable, printable_line


def text_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, is_first_left: bool = False
) -> str:
    """Format a table with right-aligned columns; `is_first_left` left-aligns the first column.

    >>> print(text_table(["t", "S"], [["-10", "0.1"], ["0", "1.25"]]))
      t     S
    -10   0.1
      0  1.25
    """
    head, *rows = [[printable_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in [head, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        if is_first_left:
            cells[0] = row[0].ljust(widths[0])
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def html_table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """Format a table as HTML with all text escaped.

    >>> print(html_table("a < b", ["t"], [["0"]]).replace("<t", "\\n<t"))
    <BLANKLINE>
    <table><caption>a &lt; b</caption>
    <thead>
    <tr>
    <th>t</th></tr></thead>
    <tbody>
    <tr>
    <td>0</td></tr></tbody></table>
    """

    def line(tag: str, row: Sequence[str]) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in row)}</tr>"

    lines = "".join(line("td", row) for row in rows)
    body = f"<thead>{line('th', head)}</thead><tbody>{lines}</tbody>"
    below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    return printable(f"<table><caption>{html.escape(caption)}</caption>{body}</table>{below}")
