"""How large a definition and its instance may be; definitions come from strangers."""

from __future__ import annotations

MAX_SOURCE_CHARACTERS = 1 << 18
MAX_NAME_CHARACTERS = 128
MAX_DEPTH = 64
"""Nesting of an expression after `where` was inlined; keeps recursion under Python's limit."""
MAX_NODES = 50_000
"""Nodes of all expressions of a definition after `where` was inlined."""
MAX_STATEMENTS = 512
MAX_TENSORS = 1024
MAX_RANK = 16
MAX_INDICES = 24
MAX_ELEMENTS = 1 << 40
"""Elements of one tensor; far more than memory, but all products of sizes stay exact in int64."""
MAX_POINTS = 1 << 48
"""Points of one statement's box."""
