"""What decides a captured row: all that its worker imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.capturing import Keys
from builder.program import ROOTS, files_behind


@pytest.mark.parametrize(
    ("worker", "framework", "expected"),
    [
        (
            "builder.worker",
            "torch",
            ("frameworks/torch/capture/dynamo.py", "frameworks/torch/operators/table.py",
             "operators/families/pointwise.py", "sample/symbols.py", "schema/to_row.py",
             "inputs/defaults.py", "analysis/hashes.py"),
        ),
        (
            "builder.paddle_worker",
            "paddle",
            ("frameworks/paddle/program.py", "frameworks/paddle/value_types.py",
             "storage/table.py"),
        ),
    ],
)  # fmt: skip
def test_all_that_the_worker_reaches_counts(
    worker: str, framework: str, expected: tuple[str, ...]
) -> None:
    files = files_behind(worker, framework)
    assert {ROOTS["graphnet_datasets"] / name for name in expected} <= set(files)
    assert ROOTS["builder"] / "catalog.py" in files
    names = {str(path) for path in files}
    assert not any("/hub/" in name or "/cli/" in name for name in names)


def test_an_edit_of_anything_reached_gives_other_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Keys()._program("torch")
    changed = ROOTS["graphnet_datasets"] / "frameworks" / "torch" / "capture" / "symbolic.py"
    copy = tmp_path / "symbolic.py"
    copy.write_text(changed.read_text() + "\n# edited\n")
    files = tuple(
        copy if path == changed else path
        for path in files_behind("builder.worker", "torch", ("builder.architectures.",))
    )
    monkeypatch.setattr("builder.capturing.files_behind", lambda *_: files)
    assert Keys()._program("torch") != before
    assert Keys(is_strict=False)._program("torch") == ""
