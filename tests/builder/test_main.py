"""`python -m builder import`; the other commands have tests of what they call."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.__main__ import main
from graphnet_datasets import load_dataset, write_directory
from tests.tables import chain


def test_import_is_that_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_directory(chain("a/good", 2), tmp_path / "samples" / "a" / "good")
    out = tmp_path / "mine.parquet"
    assert main(["import", str(tmp_path / "samples"), "--out", str(out), "--jobs", "1"]) == 0
    assert load_dataset(out, split="train")["id"][:] == ["a/good"]
    assert main(["import", str(tmp_path / "samples"), "--out", str(out)]) == 1
    assert capsys.readouterr().err.endswith(f"`{out}` exists. Choose another file, or delete it.\n")
