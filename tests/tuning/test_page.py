"""The Python of docs/tuning.md runs when it is pasted, and says what the page says."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from graphnet_datasets.tuning.records import write_tuning

from .toy import TASKS, make_pool

for package in ("sklearn", "torch"):
    pytest.importorskip(package)

PAGE = Path(__file__).parents[2] / "docs" / "tuning.md"


def test_the_python_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pool = make_pool(each=10)
    rows = [
        dataclasses.replace(row, record_id=f"{task.task_id}/{index}")
        for task in TASKS
        for index, row in enumerate(pool.rows(task))
    ]
    write_tuning(tmp_path / "tuned", TASKS, rows)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    # Export and import of TVM's files need TVM: tests/tuning/test_exporting.py. Tensor
    # comprehensions need their extra: tests/tensor_comprehensions/test_tasks.py.
    elsewhere = ("tvm_database", "tensor_comprehensions")
    read, own, predictor, dispatcher = (
        block for block in blocks if not any(name in block for name in elsewhere)
    )
    assert len(own.partition("class Neighbours")[2].strip().splitlines()) <= 20
    for block in (read, own, predictor, dispatcher):
        exec(compile(block, str(PAGE), "exec"), {"__name__": "pasted"})  # noqa: S102
    assert (tmp_path / "predictor.npz").is_file()
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(f"{len(TASKS)} {len(rows)} ") and shown[1:] == ["sparse dense"]
