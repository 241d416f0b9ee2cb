"""The `compiler_bugs` table: small graphs that show known bugs of compilers.

A row has the columns of the `graphs` table, and behind them the bug and the expected verdicts.
"""

from __future__ import annotations

import enum

import pyarrow as pa

from .graphs import GRAPHS_SCHEMA
from .version import table_metadata


class ExpectedVerdict(enum.StrEnum):
    """The verdict that a run of one compiler is expected to reach."""

    RIGHT = "right"
    """The outputs agree with those of eager at t = -3."""
    WRONG = "wrong"
    """The graph runs and its outputs do not agree with those of eager."""
    FAILS = "fails"
    """Compiling or running raises an error or ends the process."""


EXPECTED_FIELDS = pa.struct(
    [
        ("compiler", pa.string()),
        ("options", pa.string()),
        ("num_variations", pa.int32()),
        ("version", pa.string()),
        ("verdict", pa.string()),
    ]
)
"""The expected verdict of one compiler with `options` in one version."""

COMPILER_BUG_FIELDS = [
    ("bug_title", pa.string()),
    ("bug_url", pa.string()),
    ("bug_compiler", pa.string()),
    ("bug_versions", pa.string()),
    ("bug_note", pa.string()),
    ("is_verified", pa.bool_()),
    ("expected", pa.list_(EXPECTED_FIELDS)),
]
"""Columns of a bug in addition to those of a graph."""

COMPILER_BUGS_SCHEMA = pa.schema(
    [*GRAPHS_SCHEMA, *(pa.field(name, kind) for name, kind in COMPILER_BUG_FIELDS)],
    metadata=table_metadata("compiler_bugs"),
)
