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
        ("t  S\n1  1.2\n2  1.2", "t  S\n1  1.3", ("measured",), True),
        ("<b>2</b><p>Warnings: 2 noisy</p>", "<b>1</b>", ("measured",), True),
        ("<tr><td>1</td></tr><tr><td>2</td></tr> x", "<tr><td>3</td></tr> x", ("measured",), True),
    ],
)
def test_only_measurements_and_addresses_may_differ(
    before: str, after: str, tags: tuple[str, ...], is_same: bool
) -> None:
    difference = notebooks.first_difference(printed(before, *tags), printed(after, *tags))
    assert (difference is None) == is_same
    if difference:
        assert before.split()[0] in difference


def test_texts_of_a_stream_may_be_cut_anywhere() -> None:
    whole, cut = printed("one\ntwo\n"), printed("one\n")
    cut.cells[0].outputs.append(nbformat.v4.new_output("stream", name="stdout", text="two\n"))
    assert notebooks.first_difference(whole, cut) is None
    cut.cells[0].outputs[1].name = "stderr"
    assert notebooks.first_difference(whole, cut) is not None


def test_kinds_of_an_output_have_no_order() -> None:
    def displayed(kinds: list[str]) -> nbformat.NotebookNode:
        notebook = notebook_of("table")
        data = {kind: "1" for kind in kinds}
        notebook.cells[0].outputs = [nbformat.v4.new_output("display_data", data=data)]
        return notebook

    kinds = ["text/plain", "text/html"]
    assert notebooks.first_difference(displayed(kinds), displayed(kinds[::-1])) is None


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
