"""Hostile strings in every string column: no verb, page or picture shows a control character."""

from __future__ import annotations

import base64
import gzip
import re
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from graphnet_datasets import errors
from graphnet_datasets.benchmark.commands import command_of
from graphnet_datasets.benchmark.records.records import write_runs
from graphnet_datasets.cli.app import app
from graphnet_datasets.hub.card import _cell
from graphnet_datasets.hub.plot import draw_sizes
from graphnet_datasets.report import write_page
from graphnet_datasets.report.site import write_site
from graphnet_datasets.schema import RUNS_SCHEMA
from graphnet_datasets.schema.tables import GRAPHS
from graphnet_datasets.scores import speedup_score
from graphnet_datasets.scores.text import html_table, text_table
from graphnet_datasets.storage.table import write_table
from graphnet_datasets.terminal import printable
from tests.report.site.records import failed, timed
from tests.tables import rows as graph_rows

ESC, RLO, CSI, ZWSP, LRI, TAG = "\x1b", "\u202e", "\x9b", "\u200b", "\u2066", "\U000e0041"
HOSTILE = f"{ESC}]0;owned\x07{ESC}[2J{RLO}gpj.exe{CSI}31m{ZWSP}{LRI}{TAG}\r\u2028"
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\U000e0041]"
)
CLOSED = {
    "undecidable_reason",
    "status",
    "reason",
    "phase",
    "task",
    "framework",
    "created_at",
    "started_at",
}
"""Columns of closed vocabularies or moments: other strings are refused when records are read."""


def test_every_control_and_format_character_is_escaped() -> None:
    for code in (*range(0x20000), *range(0xE0000, 0xE0080)):
        character = chr(code)
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            is_kept = character in "\t\n"
            assert (printable(character) == character) is is_kept, hex(code)
    assert printable("naïve 模型 ünïcode ✓") == "naïve 模型 ünïcode ✓"


def string_columns(schema: pa.Schema) -> list[str]:
    return [
        field.name
        for field in schema
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]


def hostile_runs() -> list[dict[str, Any]]:
    """Return records with a hostile string in one column each, and in all columns at once."""
    names = [name for name in string_columns(RUNS_SCHEMA) if name not in CLOSED]
    assert {"sample_id", "compiler", "error_message", "dataset", "device", "family"} <= set(names)
    made = []
    for place, name in enumerate(names):
        for row in (timed(f"a{place}", 2.0), failed(f"b{place}", "compile_failed")):
            made.append({**row, "run_id": f"{row['sample_id']}x", name: f"{HOSTILE}{place}"})
    everything = dict.fromkeys(names, HOSTILE)
    made.append({**timed("c", 2.0), **everything})
    last = {"run_id": "d", "sample_id": f"{HOSTILE}d", "warnings": [HOSTILE]}
    made.append({**failed("d", "run_failed"), **everything, **last})
    return made


def check(text: str, where: object) -> None:
    match = HIDDEN.search(text)
    assert match is None, f"{where}: {text[max(0, match.start() - 60) : match.end() + 20]!r}"


def check_files(directory: Path) -> int:
    """Check the text of all files, that of packed chunks and of embedded pictures too."""
    count = 0
    for path in directory.rglob("*"):
        if path.suffix in (".html", ".svg", ".md", ".css"):
            text = path.read_text()
            check(text, path)
            for data in re.findall(r"data:image/svg\+xml;base64,([\w+/=]+)", text):
                check(base64.b64decode(data).decode(), path)
            count += 1
        elif path.suffix == ".js" and path.parent.name == "data":
            packed = re.search(r'"([\w+/=]+)"\);', path.read_text())
            assert packed is not None
            # JSON: a character that the browser would show is written as an escape.
            shown = gzip.decompress(base64.b64decode(packed[1])).decode()
            check(re.sub(r"\\\\u", "", shown).encode().decode("unicode_escape"), path)
            count += 1
    return count


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    write_runs(hostile_runs(), place / "runs.parquet")
    return place


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("graphs")
    names = set(string_columns(GRAPHS.schema)) & {
        "source", "license", "family", "subtask", "why_excluded", "model", "url", "revision",
    }  # fmt: skip
    made = [row | dict.fromkeys(names, HOSTILE) for row in graph_rows("cv", range(1, 3))]
    write_table(made, place / "cv" / "train-0000.parquet")
    return place


def test_pages_and_the_site_show_no_control_character(tmp_path: Path) -> None:
    names = (
        "sample_id", "family", "dataset", "device", "compiler", "environment", "error_type",
        "error_message", "compiler_version",
    )  # fmt: skip
    records = [{**timed("a", 2.0), **dict.fromkeys(names, HOSTILE)}]
    write_page({f"arm{HOSTILE}": records}, tmp_path / "page.html", title=f"t{HOSTILE}")
    write_site({HOSTILE: records}, tmp_path / "site", title=f"t{HOSTILE}")
    assert check_files(tmp_path) > 5


@pytest.mark.parametrize("place", range(4))
def test_commands_to_copy_show_all_that_they_run(place: int) -> None:
    for record in hostile_runs()[place::4]:
        check(command_of(record), record["sample_id"])
        assert "\n" not in command_of(record)


@pytest.mark.parametrize(
    "changes",
    [
        {"compiler": "evil.py:f"}, {"compiler": "evil:f"}, {"compiler": "../evil"},
        {"compiler": "a b"}, {"compiler": "-x"}, {"sample_id": "./evil"}, {"sample_id": "@ids"},
        {"sample_id": "/etc/passwd"}, {"compiler_options": '{"records": "/home/a/b"}'},
        {"compiler_options": '{"command": ["sh", "-c", "id"]}'},
        {"compiler_options": '{"--out": "x"}'}, {"compiler": f"inductor{RLO}"},
        {"compiler": "inductor\n"},
    ],
    ids=str,
)  # fmt: skip
def test_no_command_is_offered_that_imports_or_reads_files(changes: dict[str, Any]) -> None:
    record = {**timed("a", 2.0), **changes}
    command = command_of(record)
    assert command.startswith("# No command: the record ")
    assert "\n" not in command
    check(command, changes)
    assert command_of(timed("a", 2.0)).startswith("graphnet run a --compiler ")


@pytest.mark.parametrize(
    "words",
    [
        ["score", "RUNS"], ["score", "RUNS", "--by-sample"], ["score", "RUNS", "--by", "family"],
        ["compare", "RUNS", "RUNS"], ["plot", "RUNS", "--out", "OUT"],
        ["report", "RUNS", "--out", "OUT/page.html"], ["report", "RUNS", "--out", "OUT/site"],
        ["run", "--again", "RUNS/d"], ["list", "--dataset", "GRAPHS"],
        ["list", "cv", "--dataset", "GRAPHS"], ["show", "cv/chain-1", "--dataset", "GRAPHS"],
        ["validate", "GRAPHS"], ["operators", "--dataset", "GRAPHS"],
        ["show", f"no{HOSTILE}", "--dataset", "GRAPHS"], [f"verb{HOSTILE}"],
        ["run", f"x{HOSTILE}"], ["run", "cv", "--compiler", f"x{HOSTILE}", "--limit", "1"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_verb_prints_a_control_character(
    words: list[str], runs: Path, graphs: Path, tmp_path: Path
) -> None:
    names = {"RUNS": str(runs), "GRAPHS": str(graphs), "OUT": str(tmp_path)}
    arguments = [re.sub("RUNS|GRAPHS|OUT", lambda match: names[match[0]], word) for word in words]
    result = CliRunner().invoke(app, arguments)
    check(result.output, words)
    check(str(result.exception or ""), words)
    check_files(tmp_path)


def test_tables_pictures_and_messages_show_no_control_character() -> None:
    check(text_table([HOSTILE], [[HOSTILE]]), "table")
    check(html_table(HOSTILE, [HOSTILE], [[HOSTILE]], [HOSTILE]), "HTML")
    check(draw_sizes({HOSTILE: [3]}), "SVG of a card")
    check(_cell(HOSTILE), "card")
    check(str(errors.SampleError(HOSTILE)), "error")
    check(str(speedup_score([timed("a", 2.0) | {"compiler": HOSTILE}])), "score")
