"""Execution of notebooks, and the comparison of their outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from builder import notebooks
from builder.__main__ import main
from graphnet_datasets.errors import GraphNetError


def notebook_of(*sources: str, tags: tuple[str, ...] = ()) -> nbformat.NotebookNode:
    cells = [new_code_cell(source, metadata={"tags": list(tags)}) for source in sources]
    return new_notebook(cells=cells)


def printed(text: str, *tags: str) -> nbformat.NotebookNode:
    notebook = notebook_of("print(text)", tags=tags)
    notebook.cells[0].outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    return notebook


@pytest.mark.parametrize(
    ("before", "after", "tags", "is_same"),
    [
        ("<Pool object at 0x7f5a57c90140>", "<Pool object at 0x7f00aa000000>", (), True),
        ("3 operators", "4 operators", (), False),
        ("eager     0.1402 ms", "eager  1.3e-05 ms", ("measured",), True),
        ("eager  0.14 ms", "inductor  0.14 ms", ("measured",), False),
    ],
)
def test_only_measurements_and_addresses_may_differ(
    before: str, after: str, tags: tuple[str, ...], is_same: bool
) -> None:
    difference = notebooks.first_difference(printed(before, *tags), printed(after, *tags))
    assert (difference is None) == is_same
    if difference:
        assert before.split()[0] in difference


def test_a_missing_output_is_a_difference() -> None:
    assert notebooks.first_difference(notebook_of("print(1)"), printed("1")) == (
        "The notebook stores 0 outputs, and its code has 1."
    )


def test_a_notebook_is_stored_with_its_outputs_and_the_hash_of_its_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.ipynb"
    nbformat.write(notebook_of("print(40 + 2)", "import os; print(os.listdir())"), path)
    assert main(["notebooks", str(path)]) == 1
    assert "The notebook stores 0 outputs, and its code has 2." in capsys.readouterr().out
    stored = nbformat.read(path, as_version=4)
    assert [cell.outputs[0].text for cell in stored.cells] == ["42\n", "[]\n"]
    assert stored.metadata["code_sha256"] == notebooks.code_hash(stored)
    stored.cells[0].source = "print(43)"
    assert stored.metadata["code_sha256"] != notebooks.code_hash(stored)
    nbformat.write(stored, path)
    assert main(["notebooks", str(path)]) == 1
    assert "43" in capsys.readouterr().out
    assert main(["notebooks", str(path)]) == 0


@pytest.mark.parametrize(
    ("source", "message"),
    [("1 / 0", "ZeroDivisionError"), ("import sys; sys.stderr.write('oh')", "standard error: oh")],
)
def test_a_cell_that_fails_or_warns_is_an_error(source: str, message: str) -> None:
    with pytest.raises(GraphNetError, match=message):
        notebooks.execute(notebook_of(source))
