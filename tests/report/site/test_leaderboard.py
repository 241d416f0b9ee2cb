"""The site of the embedded records, as `make leaderboard` builds it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from typer.testing import CliRunner

from graphnet_datasets import load_dataset
from graphnet_datasets.cli.app import app

LINK = re.compile(r'(?:href|src)="([^"]+)"')


@pytest.mark.slow
def test_the_site_of_the_embedded_records_is_complete(tmp_path: Path) -> None:
    out = tmp_path / "site"
    result = CliRunner().invoke(app, ["report", "graphnet", "--out", str(out)])
    assert result.exit_code == 0, result.output
    pages = sorted(out.rglob("*.html"))
    assert len(pages) > 100

    broken = []
    for page in pages:
        for link in LINK.findall(page.read_text()):
            address = urlsplit(link)
            if address.scheme or not address.path:
                continue
            if not (page.parent / unquote(address.path)).exists():
                broken.append(f"{page.relative_to(out)}: {link}")
    assert broken == []

    start = (out / "index.html").read_text()
    compilers = {row["compiler"] for row in load_dataset("graphnet", "runs", split="train")}
    assert [compiler for compiler in sorted(compilers) if compiler not in start] == []
