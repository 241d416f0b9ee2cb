"""The table `tc_cache`: tuned options of tensor comprehensions, and their times."""

from __future__ import annotations

import pyarrow as pa

from ..schema import Config, Table

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

_DESCRIPTIONS = {
    "schema_version": "version of the format",
    "row_id": "SHA-256 of `key` and `options`",
    "key": "SHA-256 of the columns from `definition` to `generator_version`",
    "definition": "SHA-256 of the canonical text, which does not reveal the computation",
    "inputs": "dtype and shape of each input",
    "outputs": "dtype and shape of each output",
    "backend": "kind of code: for a CPU or a GPU",
    "processor": "name of the processor or GPU",
    "isa": "instruction set of the code",
    "threads": "threads of the code",
    "compiler": "compiler of the generated code",
    "generator_version": "version of the code generator",
    "options": "options of the code generator, as JSON",
    "times_ms": "time of each call",
    "median_ms": "median of these times",
    "source_hash": "hash of the generated code",
    "error": "error of these options; empty if the code ran",
    "machine": "machine and versions of the measurement",
}

TC_CACHE = Table(
    "tc_cache",
    "tuned options of tensor comprehensions",
    TC_CACHE_SCHEMA,
    descriptions=_DESCRIPTIONS,
    key="row_id",
    label="row_id",
    scalars=("schema_version", "row_id", "definition", "backend", "processor", "isa", "threads"),
    counted_by=("backend", "isa"),
    order=("key", "median_ms"),
    listed=("definition", "inputs", "processor", "isa", "threads", "median_ms", "options"),
)

CONFIGS = (Config("tc_cache", TC_CACHE, "tuned options of tensor comprehensions and their times"),)
"""The configs of this package."""
