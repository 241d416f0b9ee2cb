"""Limits on the size of a definition and its instance, since definitions may be untrusted."""

from __future__ import annotations

MAX_SOURCE_CHARACTERS = 1 << 18
MAX_NAME_CHARACTERS = 128
MAX_DEPTH = 64
"""Nesting of an expression with `where` inlined; avoids Python's recursion limit."""
MAX_NODES = 50_000
"""Nodes of all expressions of a definition with `where` inlined."""
MAX_STATEMENTS = 512
MAX_TENSORS = 1024
MAX_RANK = 16
MAX_INDICES = 24
MAX_ELEMENTS = 1 << 40
"""Elements of a tensor; larger than any memory, but products of sizes stay exact in int64."""
MAX_POINTS = 1 << 48
"""Points of the box of a statement."""
