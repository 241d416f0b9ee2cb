"""The site in `docs/leaderboard` is what the command makes of the embedded records."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from graphnet_datasets.cli.app import app

SITE = Path(__file__).parents[3] / "docs" / "leaderboard"


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_the_site_of_the_docs_is_that_of_the_embedded_records(tmp_path: Path) -> None:
    out = tmp_path / "site"
    result = CliRunner().invoke(app, ["report", "graphnet", "--out", str(out)])
    assert result.exit_code == 0, result.output
    made, kept = files(out), files(SITE)
    assert made.keys() == kept.keys(), "run `make leaderboard`"
    assert [name for name in made if made[name] != kept[name]] == [], "run `make leaderboard`"
