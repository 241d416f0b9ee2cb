"""The `compiler_bugs` table: small graphs that show known bugs of compilers.

A row has the columns of the `graphs` table, and behind them the bug and the expected verdicts.
"""

from __future__ import annotations

import enum

import pyarrow as pa

from .columns import Column, Structs, arrow_schema
from .graphs import GRAPH_COLUMNS


class ExpectedVerdict(enum.StrEnum):
    """The verdict that a run of one compiler is expected to reach."""

    RIGHT = "right"
    """The outputs agree with those of eager at t = -3."""
    WRONG = "wrong"
    """The graph runs and its outputs do not agree with those of eager."""
    FAILS = "fails"
    """Compiling or running raises an error or ends the process."""


EXPECTED_FIELDS = (
    Column("compiler", pa.string(), "name of the compiler"),
    Column("options", pa.string(), "its options, as JSON"),
    Column(
        "num_variations", pa.int32(), "number of sizes and numbers that the graph is called with"
    ),
    Column("version", pa.string(), "version of the compiler"),
    Column("verdict", pa.string(), "expected verdict"),
)
"""The expected verdict of one compiler with `options` in one version."""

COMPILER_BUG_COLUMNS = (
    *GRAPH_COLUMNS,
    Column("bug_title", pa.string(), "title of the bug"),
    Column("bug_url", pa.string(), "address of the public report; null if no report is known"),
    Column("bug_compiler", pa.string(), "compiler with the bug"),
    Column("bug_versions", pa.string(), "versions that the report names"),
    Column("bug_note", pa.string(), "the right result and the wrong one"),
    Column(
        "is_verified",
        pa.bool_(),
        "whether the bug occurs in the version of `bug_compiler` that `expected` names",
    ),
    Column(
        "expected", Structs(EXPECTED_FIELDS), "verdict of each compiler that was run on the graph"
    ),
)
"""Columns of a graph, followed by those of the bug."""

COMPILER_BUGS_SCHEMA = arrow_schema("compiler_bugs", COMPILER_BUG_COLUMNS)
"""The Arrow schema of the `compiler_bugs` table."""
