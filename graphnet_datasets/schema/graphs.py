"""The `graphs` table: one row per graph.

Columns for filters are plain and at the top, most important first; lists and the graph itself
follow as nested columns. Files of this format version may have another order, because columns are
read by name. A row represents a sample exactly. Derived columns, filled by other packages, may be
null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from .decimal_elements import DECIMAL_FIELDS
from .repeated_elements import REPEAT_FIELDS
from .version import table_metadata

if TYPE_CHECKING:
    import datasets

VALUE_FIELDS = [
    ("dtype", pa.string()),
    ("shape", pa.list_(pa.int64())),
    ("symbolic_shape", pa.list_(pa.string())),
    ("stride", pa.list_(pa.int64())),
    ("symbolic_stride", pa.list_(pa.string())),
]
"""The type of a value. `shape` and `stride` are concrete, at the sizes of the capture.
`symbolic_shape` is null for a static shape; otherwise it has an expression for each symbolic
dimension and null for each fixed one. `symbolic_stride` is similar."""

INPUT_FIELDS = [
    ("role", pa.string()),
    *VALUE_FIELDS,
    ("source_name", pa.string()),
    ("device", pa.string()),
    ("mean", pa.float64()),
    ("std", pa.float64()),
    ("min", pa.float64()),
    ("max", pa.float64()),
    ("is_measured", pa.bool_()),
    ("data", pa.binary()),
]
"""An argument of the graph. `is_measured` is null without statistics. `data` is little-endian and
row-major, and null if no elements are stored, or if they are in `decimal_elements` or equal those
of an earlier input (`repeated_elements`)."""

CALIBRATED_FIELDS = [
    ("input", pa.int32()),
    ("mean", pa.float64()),
    ("std", pa.float64()),
    ("min", pa.float64()),
    ("max", pa.float64()),
]
"""Statistics found by calibration, and the number of the input to draw from them; the recorded
statistics stay in `inputs`."""

OP_FIELDS = [
    ("target", pa.string()),
    ("operands", pa.list_(pa.int32())),
    ("args", pa.string()),
    ("kwargs", pa.string()),
    ("results", pa.list_(pa.struct(VALUE_FIELDS))),
    ("module", pa.string()),
]
"""A call of `target`. Values are numbered inputs first, then one per operator. `operands` are the
numbers of the values used, and `args` and `kwargs` are templates (see `templates`)."""

OUTPUT_STRUCTURE_FIELDS = [("operands", pa.list_(pa.int32())), ("structure", pa.string())]
"""The result of the graph: the template of one argument, and the numbers of its values."""

SYMBOL_FIELDS = [
    ("name", pa.string()),
    ("hint", pa.int64()),
    ("lower", pa.int64()),
    ("upper", pa.int64()),
]

CONSTRAINT_FIELDS = [("left", pa.string()), ("relation", pa.string()), ("right", pa.string())]

PROVENANCE_FIELDS = [
    ("is_model_name_certain", pa.bool_()),
    ("capture", pa.string()),
    ("framework_version", pa.string()),
    ("library_version", pa.string()),
    ("graph_index", pa.int32()),
    ("graph_count", pa.int32()),
    ("break_reason", pa.string()),
    ("source_hash", pa.string()),
    ("faults", pa.list_(pa.string())),
    ("metadata", pa.string()),
]

CUSTOM_OPERATOR_FIELDS = [
    ("name", pa.string()),
    ("schema", pa.string()),
    ("source", pa.string()),
    ("source_hash", pa.string()),
]
"""An operator missing from the table, with the Python source that defines it and its SHA-256."""

CHECK_FIELDS = [
    ("check", pa.string()),
    ("outcome", pa.string()),
    ("reason", pa.string()),
    ("versions", pa.list_(pa.struct([("name", pa.string()), ("version", pa.string())]))),
]
"""The result of one check of `validation`: `passed`, `failed` or `skipped`, the reason, and the
versions of the software on which it depends."""

PROVENANCE_SCALARS = ("source", "model_name", "license", "mode", "parent_id")
"""Provenance fields that are top-level columns, for filters."""

ANALYSIS_COLUMNS = (
    "subtask",
    "family",
    "structure_hash",
    "signature_hash",
    "flops",
    "flops_coverage",
    "bytes_moved",
    "arithmetic_intensity",
    "peak_memory_bytes",
    "op_tags",
    "op_histogram",
)
"""Columns computed from the sample by `analysis`; null if not computed."""

CALIBRATION_COLUMNS = ("calibration", "calibrated_inputs")
"""Columns filled by calibration; null before it."""

VALIDATION_COLUMNS = ("validation", "why_excluded")
"""Columns with the results of the checks of `validation`; null before validation. `why_excluded` is
also null for a sample that no check excludes."""

GROUP_COLUMNS = ("split_group", "split")
"""Columns that depend on all graphs of a dataset (`builder.groups`)."""

BUILD_COLUMNS = (
    "library",
    "library_version",
    "catalog_line",
    "overrides",
    "input_specification",
    "seed",
    "model_source_hash",
    "weights_origin",
    "is_truncated",
    "is_reimplementation",
)
"""Columns that describe how a graph from a catalog of models was created."""

PIECE_COLUMNS = ("piece_index", "num_pieces", "break_reason")
"""Columns of the graphs of a model that breaks into several graphs, which share `parent_id`; null
for whole graphs."""

LATER_COLUMNS = frozenset(
    {*PIECE_COLUMNS, "weights_origin", "decimal_elements", "repeated_elements"}
)
"""Columns that files of this format version may lack; they are read as null."""

DERIVED_COLUMNS = BUILD_COLUMNS + GROUP_COLUMNS + ANALYSIS_COLUMNS + VALIDATION_COLUMNS
"""All columns of a graph that are not part of the sample."""

GRAPHS_SCHEMA = pa.schema(
    [
        # shown first by viewers: identity, kind and size
        ("id", pa.string()),
        ("task", pa.string()),
        ("subtask", pa.string()),
        ("model_name", pa.string()),
        ("framework", pa.string()),
        ("num_ops", pa.int64()),
        ("num_params", pa.int64()),
        ("num_inputs", pa.int64()),
        ("num_outputs", pa.int64()),
        ("input_bytes", pa.int64()),
        ("flops", pa.int64()),
        ("dtype", pa.string()),
        ("mode", pa.string()),
        ("is_dynamic", pa.bool_()),
        ("kind", pa.string()),
        ("split", pa.string()),
        ("source", pa.string()),
        ("license", pa.string()),
        # how it was created
        ("library", pa.string()),
        ("library_version", pa.string()),
        ("overrides", pa.string()),
        ("input_specification", pa.string()),
        ("catalog_line", pa.string()),
        ("seed", pa.int64()),
        ("model_source_hash", pa.string()),
        ("weights_origin", pa.string()),
        ("is_truncated", pa.bool_()),
        ("is_reimplementation", pa.bool_()),
        ("calibration", pa.string()),
        # related graphs
        ("split_group", pa.string()),
        ("family", pa.string()),
        ("structure_hash", pa.string()),
        ("signature_hash", pa.string()),
        ("parent_id", pa.string()),
        ("piece_index", pa.int32()),
        ("num_pieces", pa.int32()),
        ("break_reason", pa.string()),
        ("num_occurrences", pa.int64()),
        # derived
        ("flops_coverage", pa.float64()),
        ("bytes_moved", pa.int64()),
        ("arithmetic_intensity", pa.float64()),
        ("peak_memory_bytes", pa.int64()),
        ("why_excluded", pa.string()),
        ("schema_version", pa.int32()),
        # lists and the graph
        ("tags", pa.list_(pa.string())),
        ("parent_ops", pa.list_(pa.int32())),
        ("op_tags", pa.list_(pa.string())),
        ("op_histogram", pa.list_(pa.struct([("target", pa.string()), ("count", pa.int32())]))),
        ("validation", pa.list_(pa.struct(CHECK_FIELDS))),
        ("symbols", pa.list_(pa.struct(SYMBOL_FIELDS))),
        ("constraints", pa.list_(pa.struct(CONSTRAINT_FIELDS))),
        ("inputs", pa.list_(pa.struct(INPUT_FIELDS))),
        ("decimal_elements", pa.struct(DECIMAL_FIELDS)),
        ("repeated_elements", pa.list_(pa.struct(REPEAT_FIELDS))),
        ("calibrated_inputs", pa.list_(pa.struct(CALIBRATED_FIELDS))),
        ("ops", pa.list_(pa.struct(OP_FIELDS))),
        ("outputs", pa.struct(OUTPUT_STRUCTURE_FIELDS)),
        ("custom_operators", pa.list_(pa.struct(CUSTOM_OPERATOR_FIELDS))),
        ("provenance", pa.struct(PROVENANCE_FIELDS)),
    ],
    metadata=table_metadata("graphs"),
)
"""Columns of the `graphs` table. `dtype` is the dtype with the most elements over all input
tensors, including weights; `input_bytes` is the size of these tensors; `mode` is eval or train.
`calibration` is `calibrated`, `unneeded`, `shared`, or null if not tried. `parent_ops` are the
positions of the operators in the graph `parent_id` from which a part was cut, null for a whole
graph; `num_occurrences` counts the occurrences of merged equal parts. `subtask` is the purpose of
the model within its task (`analysis.subtasks`). Nearly equal graphs share a `split_group`
(`builder.groups`), and `split` is that of the group. `catalog_line` is the line of the builder's
catalog; `overrides` (JSON) and `input_specification` are parts of it. `seed` is that of the model's
buffers and the example inputs. `model_source_hash` is the SHA-256 of the module that defines the
model's class. `is_truncated` marks fewer layers than published, and `is_reimplementation` model
code written by this project. `weights_origin` is `initialised` if the statistics of weights were
measured on weights drawn by the model's constructor, and null if they were declared by initialisers
or have another origin. A model that breaks yields several graphs: `parent_id` is its name,
`piece_index` counts from 0, `num_pieces` is the number of graphs and `break_reason` the reason why
the piece ended."""


def graphs_features() -> datasets.Features:
    """Return the columns of the `graphs` table as `datasets.Features`."""
    import datasets

    return datasets.Features.from_arrow_schema(GRAPHS_SCHEMA)
