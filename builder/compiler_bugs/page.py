"""The table of bugs in the docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..pages import write_between

BEGIN = "<!-- compiler bugs: begin -->"
END = "<!-- compiler bugs: end -->"


def write_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the table of bugs between its markers.

    Raises:
        GraphNetError: the page lacks the markers.
    """
    num_verified = sum(row["is_verified"] for row in rows)
    lines = [
        f"{len(rows)} bugs, {num_verified} of them verified with the installed versions.",
        "",
        "| graph | bug | report | versions | verdicts | other compilers |",
        "|---|---|---|---|---|---|",
        *map(_line, sorted(rows, key=lambda row: row["id"])),
    ]
    write_between(path, BEGIN, END, lines)


def _line(row: Mapping[str, Any]) -> str:
    own, others = [], []
    for item in row["expected"]:
        varied = f" with `--vary {item['num_variations']}`" if item["num_variations"] else ""
        if item["compiler"] == row["bug_compiler"]:
            own.append(f"{item['verdict']} in {item['version']}{varied}")
        else:
            others.append(f"{item['compiler']} {item['verdict']}{varied}")
    report = "none" if row["bug_url"] is None else f"[{_short(row['bug_url'])}]({row['bug_url']})"
    cells = (
        f"`{row['id'].removeprefix('compiler_bugs/')}`",
        f"{row['bug_title']}. {row['bug_note']}",
        report,
        row["bug_versions"],
        ", ".join(own) or "unverified: not run",
        ", ".join(others) or "not run",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _short(url: str) -> str:
    *_, repository, _, number = url.split("/")
    return f"{repository} {number}"
