"""The HTML page: whole, alone, and safe whatever the records hold."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphnet_datasets.benchmark.records.records import write_runs
from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import ScoreError

from ..scores.run_rows import BROKEN_EAGER, FOUR, make_run

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from graphnet_datasets.report import write_page, write_site

VOID = {"meta", "img"}
GOOD = make_run("x", 2.0, candidate_latency_ms=[2.0], floor_ms=0.5)
EVIL = '<script>alert("x")</script>'


class Page(HTMLParser):
    """Notes the elements of a page, its references, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    evil = make_run(
        EVIL,
        status="run_failed",
        error_type=EVIL,
        environment='{"cpu": "<b>fast</b>", "num_cpus": 2}',
        task="cv",
    )
    runs: dict[str, Any] = {EVIL: [*FOUR, BROKEN_EAGER, evil], "good": [GOOD]}
    path = tmp_path_factory.mktemp("page") / "sub" / "page.html"
    assert write_page(runs, path, title=EVIL) == path
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]
    return path.read_text()


def test_the_page_is_whole_and_alone(text: str) -> None:
    page = Page(text)
    assert page.open == []
    assert page.names.count("img") == 9
    assert all(reference.startswith("data:image/svg+xml;base64,") for reference in page.references)
    assert page.names.count("caption") == 1 + 2 * 2 + 2


def test_nothing_from_records_is_markup(text: str) -> None:
    assert "script" not in Page(text).names
    assert "&lt;b&gt;fast&lt;/b&gt;" in text
    assert "<b>" not in text


def test_the_page_lists_parameters_and_failures(text: str) -> None:
    assert "2 run sets; p = 0.1, b = 0.1, variant report." in text
    assert "4 samples that are not correct at t = -3, or that no t distinguishes" in text
    assert "Every sample that counts is correct at t = -3." in text
    assert "Not in N: 1, since eager or the harness failed: broken (baseline_failed)" in text


def test_the_page_lists_where_a_faster_program_could_win_most(text: str) -> None:
    assert "The largest headroom: 1 of 1 samples" in text
    assert "<td>25 %</td>" in text


@pytest.mark.parametrize(
    "text", ["no JSON", "[" * 100_000, '{"a": ' + "1" * 5000 + "}"], ids=["words", "deep", "long"]
)
def test_texts_that_are_no_json_are_said_as_they_are(text: str, tmp_path: Path) -> None:
    columns = {"environment": text, "compiler_options": text}
    runs = [make_run("a", 2.0, **columns), make_run("b", 2.0, **columns, settings=text)]
    assert write_page({"one": runs}, tmp_path / "page.html").is_file()
    assert (write_site({"one": runs}, tmp_path / "site", dataset=None) / "index.html").is_file()


def test_nothing_is_written_where_nothing_can_be_scored(tmp_path: Path) -> None:
    with pytest.raises(ScoreError):
        write_page({"x": [BROKEN_EAGER]}, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_the_command(tmp_path: Path) -> None:
    rows = [{**row, "run_id": str(index)} for index, row in enumerate(FOUR[:2])]
    write_runs(rows, tmp_path / "runs.parquet")
    arguments = ["report", tmp_path / "runs.parquet", "--out", tmp_path / "page.html"]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.stdout == f"{tmp_path / 'page.html'}\n"
    assert "inductor" in (tmp_path / "page.html").read_text()
