"""The format of a catalog, and that the catalog of the embedded dataset follows it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from builder.capturing import BUILDER
from builder.catalog import CatalogError, InputSpec, parse_line, read_catalog
from graphnet_datasets.sample.vocabulary import TASKS

LINE = (
    "a/b | cv | torch | resnet | layers=[1, 1] kind='xy' c.d=1 | x=normal(1, 3) "
    "| float32 | eval | x.0 | small"
)


def test_a_line_is_read_field_by_field() -> None:
    entry = parse_line(LINE)
    assert (entry.name, entry.task, entry.library, entry.builder) == (
        "a/b", "cv", "torch", "resnet",
    )  # fmt: skip
    assert entry.overrides == {"layers": [1, 1], "kind": "xy", "c.d": 1}
    assert entry.inputs == (InputSpec("x", "normal", (1, 3)),)
    assert (entry.dtype, entry.mode, entry.dynamic, entry.tags) == (
        "float32", "eval", ("x.0",), ("small",),
    )  # fmt: skip
    assert parse_line(entry.line) == entry


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            " | small",
            "",
            "the catalog has 9 fields; a catalog line has 10: name | task | library | builder | "
            "overrides | inputs | dtype | mode | dynamic | tags.",
        ),
        (
            "| cv |",
            "| vision |",
            "the catalog has the task `vision` (accepted: cv, nlp, audio, multimodal, scientific, "
            "other).",
        ),
        (
            "c.d=1",
            "c.d=f(1)",
            "the catalog has the override `c.d=f(1)`; write `key=literal` with a Python literal.",
        ),
        (
            "normal(1, 3)",
            "normal[1]",
            "the catalog has the input `x=normal[1]`; write `name=kind(shape; argument, …)`, as in "
            "`input_ids=ids(1, 128; 30522)`.",
        ),
    ],
)
def test_a_line_that_breaks_the_format_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(CatalogError) as caught:
        parse_line(LINE.replace(old, new))
    assert str(caught.value) == message


def test_a_name_stands_once(tmp_path: Path) -> None:
    path = tmp_path / "catalog.txt"
    path.write_text(f"# a comment\n\n{LINE}\n{LINE}\n")
    with pytest.raises(CatalogError) as caught:
        read_catalog(path)
    assert str(caught.value) == f"`{path}` has two entries `a/b`. Rename one of them."


def test_the_starter_catalog_is_complete() -> None:
    entries = read_catalog(BUILDER / "starter.txt")
    counts = Counter(entry.task for entry in entries)
    assert len(entries) >= 120
    assert all(counts[task] >= 15 for task in TASKS)
    assert sum("small" in entry.tags for entry in entries) >= 40
    assert sum(entry.dtype == "bfloat16" for entry in entries) >= 10
    assert sum(bool(entry.dynamic) for entry in entries) >= 10
    assert {entry.library for entry in entries} == {"torch", "transformers"}
