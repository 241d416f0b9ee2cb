"""The Arrow schema of `tc_cache`: tuned options of tensor comprehensions, and their times."""

from __future__ import annotations

import pyarrow as pa

TC_CACHE_SCHEMA = pa.schema(
    [
        pa.field("schema_version", pa.int32(), nullable=False),
        pa.field("row_id", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("definition", pa.string(), nullable=False),
        pa.field("inputs", pa.list_(pa.string()), nullable=False),
        pa.field("outputs", pa.list_(pa.string()), nullable=False),
        pa.field("backend", pa.string(), nullable=False),
        pa.field("processor", pa.string(), nullable=False),
        pa.field("isa", pa.string(), nullable=False),
        pa.field("threads", pa.int32(), nullable=False),
        pa.field("compiler", pa.string(), nullable=False),
        pa.field("generator_version", pa.int32(), nullable=False),
        pa.field("options", pa.string(), nullable=False),
        pa.field("times_ms", pa.list_(pa.float64()), nullable=False),
        pa.field("median_ms", pa.float64(), nullable=False),
        pa.field("source_hash", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
        pa.field("machine", pa.string(), nullable=False),
    ]
)
"""A row is one set of options for one definition at one size on one kind of machine."""
