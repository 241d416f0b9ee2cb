"""The table `tc_cache`: tuned options of tensor comprehensions, and their times."""

from __future__ import annotations

import pyarrow as pa

from ..schema import Config, Table, required

CACHE_COLUMNS = (
    required("schema_version", pa.int32(), "version of the format"),
    required("row_id", pa.string(), "SHA-256 of `key` and `options`"),
    required("key", pa.string(), "SHA-256 of the columns from `definition` to `generator_version`"),
    required(
        "definition",
        pa.string(),
        "SHA-256 of the canonical text, which does not reveal the computation",
    ),
    required("inputs", pa.list_(pa.string()), "dtype and shape of each input"),
    required("outputs", pa.list_(pa.string()), "dtype and shape of each output"),
    required("backend", pa.string(), "kind of code: for a CPU or a GPU"),
    required("processor", pa.string(), "name of the processor or GPU"),
    required("isa", pa.string(), "instruction set of the code"),
    required("threads", pa.int32(), "threads of the code"),
    required("compiler", pa.string(), "compiler of the generated code"),
    required("generator_version", pa.int32(), "version of the code generator"),
    required("options", pa.string(), "options of the code generator, as JSON"),
    required("times_ms", pa.list_(pa.float64()), "time of each call"),
    required("median_ms", pa.float64(), "median of these times"),
    required("source_hash", pa.string(), "hash of the generated code"),
    required("error", pa.string(), "error of these options; empty if the code ran"),
    required("machine", pa.string(), "machine and versions of the measurement"),
)
"""A row is one set of options for one definition at one size on one kind of machine."""

TC_CACHE = Table(
    "tc_cache",
    "tuned options of tensor comprehensions",
    CACHE_COLUMNS,
    key="row_id",
    label="row_id",
    scalars=("schema_version", "row_id", "definition", "backend", "processor", "isa", "threads"),
    counted_by=("backend", "isa"),
    order=("key", "median_ms"),
    listed=("definition", "inputs", "processor", "isa", "threads", "median_ms", "options"),
)

TC_CACHE_SCHEMA = TC_CACHE.schema
"""The Arrow schema of the table `tc_cache`."""

CONFIGS = (Config("tc_cache", TC_CACHE, "tuned options of tensor comprehensions and their times"),)
"""The configs of this package."""
