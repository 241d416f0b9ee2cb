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
"""The expected verdict of one compiler with `options` (JSON) in one version. `num_variations` is
the setting of that name: 0, or how many sizes and numbers the compiled graph is called with."""

COMPILER_BUG_FIELDS = [
    ("bug_title", pa.string()),
    ("bug_url", pa.string()),
    ("bug_compiler", pa.string()),
    ("bug_versions", pa.string()),
    ("bug_note", pa.string()),
    ("is_verified", pa.bool_()),
    ("expected", pa.list_(EXPECTED_FIELDS)),
]
"""`bug_url` is the address of the public report, null where no report is known. `bug_compiler` is
the compiler that the report is about and `bug_versions` are the versions that it names. `bug_note`
describes the right result and the wrong one. `expected` holds a verdict for every compiler that was
run on the graph. `is_verified` means that the bug occurs in the version of `bug_compiler` that
`expected` names."""

COMPILER_BUGS_SCHEMA = pa.schema(
    [*GRAPHS_SCHEMA, *(pa.field(name, kind) for name, kind in COMPILER_BUG_FIELDS)],
    metadata=table_metadata("compiler_bugs"),
)
