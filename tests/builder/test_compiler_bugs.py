"""The catalog of compiler bugs: its entries, their captures and the table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree

from builder.compiler_bugs.bug import Bug, normals
from builder.compiler_bugs.building import VERDICTS, bug_columns, build, capture, read_verdicts
from builder.compiler_bugs.catalog import BUGS
from builder.compiler_bugs.page import BEGIN, END, write_table
from graphnet_datasets import Sample, load_dataset, make_inputs, materialize
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.storage.layout import write_readme

REPORT = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+")
RIGHT, WRONG = (
    {"options": "{}", "version": "1", "verdict": verdict} for verdict in ("right", "wrong")
)


def test_every_bug_has_a_name_a_note_and_a_report_or_none() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        assert bug.title
        assert bug.note.endswith(".")
        assert bug.url is None or REPORT.fullmatch(bug.url), bug.name
        assert bug.url is None or bug.versions != "none known"


def test_sixty_bugs_have_a_report_and_thirty_of_them_are_verified() -> None:
    verdicts = read_verdicts()
    reported = [bug for bug in BUGS if bug.url is not None]
    verified = [
        bug for bug in reported if bug_columns(bug, verdicts.get(bug.name, {}))["is_verified"]
    ]
    assert len(reported) >= 60
    assert len(verified) >= 30


def test_verdicts_are_of_bugs_in_the_catalog() -> None:
    assert read_verdicts().keys() <= {bug.name for bug in BUGS}
    assert VERDICTS.read_text().endswith("}\n")


@pytest.mark.parametrize(
    "name", ["tvm/relu-nan", "openvino/uint8-add", "inductor/clamp-strides", "iree/triu"]
)
def test_a_capture_agrees_with_its_function(name: str) -> None:
    (bug,) = [bug for bug in BUGS if bug.name == name]
    assert bug.function is not None
    sample = capture(bug)
    module = materialize(sample)
    with torch.no_grad():
        *outputs, follower = pytree.tree_leaves(module(**make_inputs(sample)))
        expected = pytree.tree_leaves(bug.function(*map(torch.from_numpy, bug.inputs)))
    assert all(
        torch.equal(output.nan_to_num(9), other.nan_to_num(9))
        for output, other in zip(outputs, expected, strict=True)
    )
    assert follower.tolist() == (torch.linspace(0.5, 1.5, 4) * 2).tolist()


@pytest.mark.paddle
@pytest.mark.parametrize("name", ["flatten-view", "diagonal-view", "transpose-view"])
def test_an_assignment_shows_in_a_view_of_eager(name: str) -> None:
    (bug,) = [bug for bug in BUGS if bug.name == f"paddle/{name}"]
    outputs = materialize(capture(bug))(**make_inputs(capture(bug)))
    assert 99.0 in outputs[0].flatten().tolist()


def test_a_function_that_leaves_an_input_out_is_refused() -> None:
    arrays = normals(2), normals(2)
    bug = Bug("a/b", "t", "tvm", None, "", "n.", lambda *tensors: tensors[0] + 1.0, arrays)
    with pytest.raises(GraphNetError, match=r"`a/b` breaks or does not use all of its inputs"):
        capture(bug)


def test_the_table_holds_the_bug_and_its_verdicts(tmp_path: Path) -> None:
    bugs = [bug for bug in BUGS if bug.name in ("tvm/relu-nan", "paddle/matrix-rank-cast")]
    path = tmp_path / "verdicts.json"
    path.write_text(json.dumps({"tvm/relu-nan": {"tvm --vary 3": WRONG, "inductor": RIGHT}}))
    assert len(build(tmp_path / "out", bugs, path)) == 2
    write_readme(tmp_path / "out")
    table: Any = load_dataset(tmp_path / "out", "compiler_bugs", split="train")
    rows = {row["id"]: row for row in table}
    relu, paddle = (rows[f"compiler_bugs/{bug.name}"] for bug in bugs)
    assert relu["is_verified"]
    assert [(item["compiler"], item["num_variations"]) for item in relu["expected"]] == [
        ("inductor", 0),
        ("tvm", 3),
    ]
    assert (paddle["is_verified"], paddle["expected"], paddle["framework"]) == (False, [], "paddle")
    elements = np.frombuffer(Sample.from_row(relu).inputs[0].data or b"", np.float32)
    assert np.isnan(elements[0])


def test_the_page_names_the_report_and_the_verdicts(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    row = {
        "id": "compiler_bugs/tvm/a",
        "bug_title": "A | B",
        "bug_note": "Note.",
        "bug_url": "https://github.com/apache/tvm/issues/1",
        "bug_versions": "0.1",
        "bug_compiler": "tvm",
        "is_verified": True,
        "expected": [
            {"compiler": "tvm", "num_variations": 0, **WRONG},
            {"compiler": "iree", "num_variations": 3, **RIGHT},
        ],
    }
    write_table(page, [row])
    assert (
        "| `tvm/a` | A \\| B. Note. | [tvm 1](https://github.com/apache/tvm/issues/1) | 0.1 | "
        "wrong in 1 | iree right with `--vary 3` |"
    ) in page.read_text()
