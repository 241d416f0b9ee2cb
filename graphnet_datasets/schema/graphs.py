"""The `graphs` table: one row per graph.

Columns for filters are plain and at the top, most important first; lists and the graph itself
follow as nested columns. Files of this format version may have another order, because columns are
read by name. A row represents a sample exactly. Derived columns, filled by other packages, may be
null.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from ..sample import Sample
from .columns import Column, Struct, Structs, arrow_schema, later_columns
from .decimal_elements import DECIMAL_FIELDS
from .repeated_elements import REPEAT_FIELDS

if TYPE_CHECKING:
    import datasets

VALUE_FIELDS = (
    Column("dtype", pa.string(), "dtype of the tensor"),
    Column("shape", pa.list_(pa.int64()), "sizes at capture time"),
    Column(
        "symbolic_shape",
        pa.list_(pa.string()),
        "expression of each symbolic size; null for fixed sizes",
    ),
    Column("stride", pa.list_(pa.int64()), "strides at capture time"),
    Column(
        "symbolic_stride",
        pa.list_(pa.string()),
        "expression of each symbolic stride; null for fixed strides",
    ),
)
"""The type of a value. `shape` and `stride` are concrete, at the sizes of the capture.
`symbolic_shape` is null for a static shape; otherwise it has an expression for each symbolic
dimension and null for each fixed one. `symbolic_stride` is similar."""

INPUT_FIELDS = (
    Column("role", pa.string(), "input, parameter, buffer, constant, symbol or scalar"),
    *VALUE_FIELDS,
    Column("source_name", pa.string(), "name in the model"),
    Column("device", pa.string(), "device at capture time"),
    Column("mean", pa.float64(), "mean of the elements"),
    Column("std", pa.float64(), "standard deviation"),
    Column("min", pa.float64(), "smallest element"),
    Column("max", pa.float64(), "largest element"),
    Column(
        "is_measured", pa.bool_(), "whether the statistics were measured; null without statistics"
    ),
    Column("data", pa.binary(), "stored elements, little-endian, unless in `decimal_elements`"),
)
"""An argument of the graph. `is_measured` is null without statistics. `data` is little-endian and
row-major, and null if no elements are stored, or if they are in `decimal_elements` or equal those
of an earlier input (`repeated_elements`)."""

CALIBRATED_FIELDS = (
    Column("input", pa.int32(), "index of the input"),
    Column("mean", pa.float64(), "mean"),
    Column("std", pa.float64(), "standard deviation"),
    Column("min", pa.float64(), "smallest element"),
    Column("max", pa.float64(), "largest element"),
)
"""Statistics found by calibration, and the number of the input to draw from them; the recorded
statistics stay in `inputs`."""

SIGNAL_FIELDS = (
    Column("input", pa.int32(), "index of the input"),
    Column("kind", pa.string(), "image, sound, spectrogram, features, text or padding"),
)
"""Data inputs that are drawn with the structure of natural data of a kind."""

OP_FIELDS = (
    Column("target", pa.string(), "name of the operator"),
    Column(
        "operands",
        pa.list_(pa.int32()),
        "indices of the operand values: inputs come first, then one value per operator",
    ),
    Column(
        "args", pa.string(), "template of the arguments: JSON in which `{}` is the next operand"
    ),
    Column("kwargs", pa.string(), "template of the keyword arguments"),
    Column("results", Structs(VALUE_FIELDS), "dtypes and shapes of the results, as far as known"),
    Column("module", pa.string(), "module of the model that contains the call"),
)
"""A call of `target`. Values are numbered inputs first, then one per operator. `operands` are the
numbers of the values used, and `args` and `kwargs` are templates (see `templates`)."""

OUTPUT_STRUCTURE_FIELDS = (
    Column("operands", pa.list_(pa.int32()), "indices of the returned values"),
    Column("structure", pa.string(), "template of their nesting"),
)
"""The result of the graph: the template of one argument, and the numbers of its values."""

SYMBOL_FIELDS = (
    Column("name", pa.string(), "name of the symbol"),
    Column("hint", pa.int64(), "value at capture time"),
    Column("lower", pa.int64(), "smallest allowed value"),
    Column("upper", pa.int64(), "largest allowed value"),
)

CONSTRAINT_FIELDS = (
    Column("left", pa.string(), "left expression"),
    Column("relation", pa.string(), "`==`, `<=` …"),
    Column("right", pa.string(), "right expression"),
)

PROVENANCE_FIELDS = (
    Column("is_model_name_certain", pa.bool_(), "whether the model's name is certain"),
    Column("capture", pa.string(), "dynamo, export, pir or source"),
    Column("framework_version", pa.string(), "version of torch or paddle"),
    Column("library_version", pa.string(), "library of the model with its version"),
    Column("graph_index", pa.int32(), "index of the graph, if the model broke into several"),
    Column("graph_count", pa.int32(), "number of graphs of the model"),
    Column("break_reason", pa.string(), "reason of the graph break"),
    Column("source_hash", pa.string(), "hash of the sample's source text in the original GraphNet"),
    Column("faults", pa.list_(pa.string()), "known defects of the record"),
    Column("metadata", pa.string(), "other metadata of the sample, as JSON"),
)

CUSTOM_OPERATOR_FIELDS = (
    Column("name", pa.string(), "qualified name"),
    Column("schema", pa.string(), "operator schema"),
    Column("source", pa.string(), "Python source"),
    Column("source_hash", pa.string(), "SHA-256 of the source"),
)
"""An operator missing from the table, with the Python source that defines it and its SHA-256."""

OP_COUNT_FIELDS = (
    Column("target", pa.string(), "name of the operator"),
    Column("count", pa.int32(), "number of calls"),
)

VERSION_FIELDS = (
    Column("name", pa.string(), "name of the software"),
    Column("version", pa.string(), "version of the software"),
)

CHECK_FIELDS = (
    Column("check", pa.string(), "name of the check"),
    Column("outcome", pa.string(), "passed, failed or skipped"),
    Column("reason", pa.string(), "reason of a failed or skipped check"),
    Column(
        "versions", Structs(VERSION_FIELDS), "versions of the software that the outcome depends on"
    ),
)
"""The result of one check of `validation`: `passed`, `failed` or `skipped`, the reason, and the
versions of the software on which it depends."""

PROVENANCE_SCALARS = ("source", "model_name", "license", "mode", "parent_id")
"""Provenance fields that are top-level columns, for filters."""

Step = Literal["sample", "build", "groups", "analysis", "calibration", "validation"]


@dataclasses.dataclass(frozen=True)
class GraphColumn(Column):
    """A column of the `graphs` table.

    `value` computes the column from the sample; without it, the column has code of its own in
    `to_row`, or is derived and null until the step `filled_by` fills it: `build` (`builder`),
    `groups` (all graphs of a dataset, `builder.groups`), `analysis`, `calibration` or `validation`.
    """

    value: Callable[[Sample], Any] | None = None
    filled_by: Step = "sample"


def _of_piece(sample: Sample, value: int | str | None) -> int | str | None:
    """Return the value for a graph of a model that breaks into several, otherwise None."""
    return value if sample.provenance.graph_count > 1 else None


def _attribute(name: str, kind: pa.DataType, description: str) -> GraphColumn:
    return GraphColumn(name, kind, description, value=attrgetter(name))


def _provenance(name: str, kind: pa.DataType, description: str) -> GraphColumn:
    return GraphColumn(name, kind, description, value=attrgetter(f"provenance.{name}"))


_built = functools.partial(GraphColumn, filled_by="build")
_grouped = functools.partial(GraphColumn, filled_by="groups")
_analysed = functools.partial(GraphColumn, filled_by="analysis")
_calibrated = functools.partial(GraphColumn, filled_by="calibration")
_validated = functools.partial(GraphColumn, filled_by="validation")

GRAPH_COLUMNS = (
    # shown first by viewers: identity, kind and size
    _attribute(
        "id", pa.string(), "name of the graph, `library/model`, with a suffix for a variant"
    ),
    _attribute("task", pa.string(), "cv, nlp, audio, multimodal, scientific or other"),
    _analysed("subtask", pa.string(), "the model's purpose within its task; null if unknown"),
    _provenance("model_name", pa.string(), "class or function that creates the model"),
    _attribute("framework", pa.string(), "torch or paddle"),
    _attribute("num_ops", pa.int64(), "number of operators"),
    _attribute("num_params", pa.int64(), "number of elements of all parameters"),
    GraphColumn(
        "num_inputs",
        pa.int64(),
        "number of arguments, including weights",
        value=lambda sample: len(sample.inputs),
    ),
    GraphColumn("num_outputs", pa.int64(), "number of results"),
    _attribute("input_bytes", pa.int64(), "size of all input tensors, including weights"),
    _analysed(
        "flops", pa.int64(), "floating-point operations of one call; null if sizes depend on data"
    ),
    GraphColumn("dtype", pa.string(), "most common dtype of the elements of inputs and weights"),
    _provenance("mode", pa.string(), "eval or train"),
    _attribute("is_dynamic", pa.bool_(), "whether the graph is known to run at other sizes"),
    _attribute("kind", pa.string(), "graph, subgraph, joint, forward or backward"),
    _grouped("split", pa.string(), "train, validation or test"),
    _provenance("source", pa.string(), "repository of the model's code"),
    _provenance("license", pa.string(), "SPDX identifier of the licence of the model's code"),
    # how it was created
    _built("library", pa.string(), "library of the builder's catalog"),
    _built("library_version", pa.string(), "version of the library at capture time"),
    _built(
        "overrides",
        pa.string(),
        "changes of the catalog line to the model's configuration, as JSON",
    ),
    _built("input_specification", pa.string(), "example inputs of the catalog line"),
    _built("catalog_line", pa.string(), "line of the catalog that the graph was built from"),
    _built("seed", pa.int64(), "seed of random buffers and of example inputs"),
    _built("model_source_hash", pa.string(), "SHA-256 of the file that defines the model's class"),
    _built(
        "weights_origin",
        pa.string(),
        "`initialised` if measured on drawn weights; null if not measured",
        is_later=True,
    ),
    _built("is_truncated", pa.bool_(), "whether the model has fewer layers than published"),
    _built("is_reimplementation", pa.bool_(), "whether this project implemented the architecture"),
    _calibrated(
        "calibration",
        pa.string(),
        "`calibrated`, `unneeded`, `shared` (taken from other sizes or from a graph with the "
        "same weights), or null if never tried",
        value=lambda sample: sample.calibration or None,
    ),
    _calibrated(
        "input_sensitivity",
        pa.float64(),
        "change of the outputs between two draws of the data, relative to their norm; null if it "
        "cannot be measured",
        is_later=True,
    ),
    _calibrated(
        "attention_entropy",
        pa.float64(),
        "median entropy of attention, relative to uniform attention; null without attention",
        is_later=True,
    ),
    _calibrated(
        "signal_outcome",
        pa.string(),
        "`reached`, or the reasons why the inputs do not separate right from wrong results",
        is_later=True,
    ),
    # related graphs
    _grouped(
        "split_group",
        pa.string(),
        "name of a group of graphs of one model, which are all in one split",
    ),
    _analysed("family", pa.string(), "hash of the sequence of operators, with repeats collapsed"),
    _analysed("structure_hash", pa.string(), "hash of the graph without the shapes of its inputs"),
    _analysed(
        "signature_hash", pa.string(), "hash of the graph including shapes; identifies the graph"
    ),
    _provenance(
        "parent_id", pa.string(), "id of the original graph of a part or a transformed graph"
    ),
    GraphColumn(
        "piece_index",
        pa.int32(),
        "index from 0 of the graph, if the model breaks into several (see `parent_id`)",
        is_later=True,
        value=lambda sample: _of_piece(sample, sample.provenance.graph_index),
    ),
    GraphColumn(
        "num_pieces",
        pa.int32(),
        "number of graphs of the model; null if it is captured as one graph",
        is_later=True,
        value=lambda sample: _of_piece(sample, sample.provenance.graph_count),
    ),
    GraphColumn(
        "break_reason",
        pa.string(),
        "reason why the graph ends before the model does",
        is_later=True,
        value=lambda sample: _of_piece(sample, sample.provenance.break_reason or None),
    ),
    _provenance("num_occurrences", pa.int64(), "number of occurrences of a part"),
    # derived
    _analysed("flops_coverage", pa.float64(), "share of operators with a FLOP formula"),
    _analysed("bytes_moved", pa.int64(), "bytes read and written by eager's kernels"),
    _analysed("arithmetic_intensity", pa.float64(), "operations per byte moved"),
    _analysed("peak_memory_bytes", pa.int64(), "peak size of inputs, weights and live values"),
    _validated("why_excluded", pa.string(), "reasons of failed checks; null if no check failed"),
    GraphColumn("schema_version", pa.int32(), "version of the format"),
    # lists and the graph
    GraphColumn(
        "tags",
        pa.list_(pa.string()),
        "`small`: milliseconds on a laptop; `truncated`: fewer layers than published",
        value=lambda sample: list(sample.provenance.tags),
    ),
    GraphColumn(
        "parent_ops",
        pa.list_(pa.int32()),
        "positions of a part's operators in the original graph",
        value=lambda sample: list(sample.provenance.parent_ops) or None,
    ),
    _analysed("op_tags", pa.list_(pa.string()), "building blocks: attention, convolution …"),
    _analysed("op_histogram", Structs(OP_COUNT_FIELDS), "calls per operator"),
    _validated("validation", Structs(CHECK_FIELDS), "outcomes of the validation checks"),
    GraphColumn("symbols", Structs(SYMBOL_FIELDS), "symbolic dimensions"),
    GraphColumn(
        "constraints",
        Structs(CONSTRAINT_FIELDS),
        "relations between symbols that the graph requires",
    ),
    GraphColumn("inputs", Structs(INPUT_FIELDS), "arguments of the graph, in order"),
    GraphColumn(
        "decimal_elements",
        Struct(DECIMAL_FIELDS),
        "stored elements of float32 inputs that are decimal fractions",
        is_later=True,
    ),
    GraphColumn(
        "repeated_elements",
        Structs(REPEAT_FIELDS),
        "inputs with the same stored elements as an earlier input",
        is_later=True,
    ),
    _calibrated(
        "calibrated_inputs",
        Structs(CALIBRATED_FIELDS),
        "statistics of inputs with which the outputs neither vanish nor overflow",
    ),
    _calibrated(
        "signals",
        Structs(SIGNAL_FIELDS),
        "data inputs that are drawn with the structure of natural data",
        is_later=True,
    ),
    GraphColumn("ops", Structs(OP_FIELDS), "operators in execution order"),
    GraphColumn("outputs", Struct(OUTPUT_STRUCTURE_FIELDS), "results of the graph"),
    GraphColumn(
        "custom_operators",
        Structs(CUSTOM_OPERATOR_FIELDS),
        "operators outside the operator table; executed only with explicit consent",
    ),
    GraphColumn("provenance", Struct(PROVENANCE_FIELDS), "origin of the capture"),
)
"""Columns of the `graphs` table. Graphs of one model share a `split_group` (`builder.groups`), and
`split` is that of the group. A model that breaks yields several graphs with the model's name as
`parent_id`. Weights that initialisers declare, and weights of another origin, have no
`weights_origin`."""


def _filled_by(*steps: Step) -> tuple[str, ...]:
    return tuple(column.name for column in GRAPH_COLUMNS if column.filled_by in steps)


BUILD_COLUMNS = _filled_by("build")
"""Columns that describe how a graph from a catalog of models was created."""

ANALYSIS_COLUMNS = _filled_by("analysis")
"""Columns computed from the sample by `analysis`; null if not computed."""

CALIBRATION_COLUMNS = _filled_by("calibration")
"""Columns filled by calibration; null before it."""

VALIDATION_COLUMNS = _filled_by("validation")
"""Columns with the results of the checks of `validation`; null before validation. `why_excluded` is
also null for a sample that no check excludes."""

DERIVED_COLUMNS = _filled_by("build", "groups", "analysis", "validation")
"""All columns of a graph that are not part of the sample."""

LATER_COLUMNS = later_columns(GRAPH_COLUMNS)
"""Columns that files of this format version may lack; they are read as null."""

GRAPHS_SCHEMA = arrow_schema("graphs", GRAPH_COLUMNS)
"""The Arrow schema of the `graphs` table."""


def graphs_features() -> datasets.Features:
    """Return the columns of the `graphs` table as `datasets.Features`."""
    import datasets

    return datasets.Features.from_arrow_schema(GRAPHS_SCHEMA)
