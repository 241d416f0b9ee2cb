"""Every row of the table of verdicts has an example that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "judging.md").read_text()
ROW = re.compile(r"\| (.+?) \| .+ \| \[.+\]\(#(.+)\) \|")
HEAD = "| Case | Verdict | Example |\n|---|---|---|\n"


def rows() -> list[tuple[str, str]]:
    """Return the case and the anchor of the example of each row."""
    table = PAGE.partition(HEAD)[2].partition("\n\n")[0]
    found = [
        re.fullmatch(r"\| (.+?) \| .+ \| \[.+\]\(#(.+)\) \|", row) for row in table.split("\n")
    ]
    assert all(found), "a row lacks the link to its example"
    return [(match[1], match[2]) for match in found if match]


def sections() -> dict[str, str]:
    """Return the text of each section by its anchor."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    titles = [title.lower().replace(" ", "-") for title in parts[1::2]]
    return dict(zip(titles, parts[2::2], strict=True))


def test_every_row_has_an_example_and_every_example_a_row() -> None:
    anchors = {anchor for _, anchor in rows()}
    assert len(anchors) >= 8
    assert anchors == {*sections()}


@pytest.mark.parametrize(("case", "anchor"), rows(), ids=lambda value: value)
def test_an_example_runs(case: str, anchor: str) -> None:
    (code,) = re.findall(r"```python\n(.+?)```", sections()[anchor], re.DOTALL)
    assert "assert" in code, case
    exec(compile(code, f"docs/judging.md#{anchor}", "exec"), {})  # noqa: S102 (a page of this repository)
