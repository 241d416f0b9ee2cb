"""One-line descriptions of the columns of graphs, parts, bugs and kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from .tables import Table

DESCRIPTIONS = {
    "schema_version": "version of the format",
    "id": "name of the graph, `library/model`, with a suffix for a variant",
    "framework": "torch or paddle",
    "task": "cv, nlp, audio, multimodal, scientific or other",
    "subtask": "the model's purpose within its task; null if unknown",
    "source": "repository of the model's code",
    "model_name": "class or function that creates the model",
    "kind": "graph, subgraph, joint, forward or backward",
    "mode": "eval or train",
    "dtype": "most common dtype of the elements of inputs and weights",
    "license": "SPDX identifier of the licence of the model's code",
    "tags": "`small`: milliseconds on a laptop; `truncated`: fewer layers than published",
    "num_ops": "number of operators",
    "num_inputs": "number of arguments, including weights",
    "num_outputs": "number of results",
    "num_params": "number of elements of all parameters",
    "input_bytes": "size of all input tensors, including weights",
    "is_dynamic": "whether the graph is known to run at other sizes",
    "parent_id": "id of the original graph of a part or a transformed graph",
    "parent_ops": "positions of a part's operators in the original graph",
    "piece_index": "index from 0 of the graph, if the model breaks into several (see `parent_id`)",
    "num_pieces": "number of graphs of the model; null if it is captured as one graph",
    "break_reason": "reason why the graph ends before the model does",
    "num_occurrences": "number of occurrences of a part",
    "calibration": "`calibrated`, `unneeded`, `shared` (taken from other sizes or from a graph "
    "with the same weights), or null if never tried",
    "library": "library of the builder's catalog",
    "library_version": "version of the library at capture time",
    "catalog_line": "line of the catalog that the graph was built from",
    "overrides": "changes of the catalog line to the model's configuration, as JSON",
    "input_specification": "example inputs of the catalog line",
    "seed": "seed of random buffers and of example inputs",
    "model_source_hash": "SHA-256 of the file that defines the model's class",
    "weights_origin": "`initialised` if measured on drawn weights; null if not measured",
    "is_truncated": "whether the model has fewer layers than published",
    "is_reimplementation": "whether this project implemented the architecture",
    "split_group": "name of a group of nearly equal graphs, which are all in one split",
    "split": "train, validation or test",
    "family": "hash of the sequence of operators, with repeats collapsed",
    "structure_hash": "hash of the graph without the shapes of its inputs",
    "signature_hash": "hash of the graph including shapes; identifies the graph",
    "flops": "floating-point operations of one call; null if sizes depend on data",
    "flops_coverage": "share of operators with a FLOP formula",
    "bytes_moved": "bytes read and written by eager's kernels",
    "arithmetic_intensity": "operations per byte moved",
    "peak_memory_bytes": "peak size of inputs, weights and live values",
    "op_tags": "building blocks: attention, convolution …",
    "op_histogram": "calls per operator",
    "op_histogram.target": "name of the operator",
    "op_histogram.count": "number of calls",
    "validation": "outcomes of the validation checks",
    "validation.check": "name of the check",
    "validation.outcome": "passed, failed or skipped",
    "validation.reason": "reason of a failed or skipped check",
    "validation.versions": "versions of the software that the outcome depends on",
    "validation.versions.name": "name of the software",
    "validation.versions.version": "version of the software",
    "why_excluded": "reasons of failed checks; null if no check failed",
    "symbols": "symbolic dimensions",
    "symbols.name": "name of the symbol",
    "symbols.hint": "value at capture time",
    "symbols.lower": "smallest allowed value",
    "symbols.upper": "largest allowed value",
    "constraints": "relations between symbols that the graph requires",
    "constraints.left": "left expression",
    "constraints.relation": "`==`, `<=` …",
    "constraints.right": "right expression",
    "inputs": "arguments of the graph, in order",
    "inputs.role": "input, parameter, buffer, constant, symbol or scalar",
    "inputs.source_name": "name in the model",
    "inputs.device": "device at capture time",
    "inputs.mean": "mean of the elements",
    "inputs.std": "standard deviation",
    "inputs.min": "smallest element",
    "inputs.max": "largest element",
    "inputs.is_measured": "whether the statistics were measured; null without statistics",
    "inputs.data": "stored elements, little-endian, unless in `decimal_elements`",
    "decimal_elements": "stored elements of float32 inputs that are decimal fractions",
    "decimal_elements.inputs": "indices of these inputs",
    "decimal_elements.lengths": "number of elements of each input",
    "decimal_elements.places": "decimal places: integers are divided by 10 to this power",
    "decimal_elements.byte_0": "lowest byte of each integer; 0, 1, 2, 3 encode 0, -1, 1, -2",
    "decimal_elements.byte_1": "second byte",
    "decimal_elements.byte_2": "third byte",
    "decimal_elements.byte_3": "highest byte",
    "repeated_elements": "inputs with the same stored elements as an earlier input",
    "repeated_elements.input": "index of the input",
    "repeated_elements.first": "index of the earlier input",
    "calibrated_inputs": "statistics of inputs with which the outputs neither vanish nor overflow",
    "calibrated_inputs.input": "index of the input",
    "calibrated_inputs.mean": "mean",
    "calibrated_inputs.std": "standard deviation",
    "calibrated_inputs.min": "smallest element",
    "calibrated_inputs.max": "largest element",
    "ops": "operators in execution order",
    "ops.target": "name of the operator",
    "ops.operands": "indices of the operand values: inputs come first, then one value per operator",
    "ops.args": "template of the arguments: JSON in which `{}` is the next operand",
    "ops.kwargs": "template of the keyword arguments",
    "ops.results": "dtypes and shapes of the results, as far as known",
    "ops.module": "module of the model that contains the call",
    "outputs": "results of the graph",
    "outputs.operands": "indices of the returned values",
    "outputs.structure": "template of their nesting",
    "custom_operators": "operators outside the operator table; executed only with explicit consent",
    "custom_operators.name": "qualified name",
    "custom_operators.schema": "operator schema",
    "custom_operators.source": "Python source",
    "custom_operators.source_hash": "SHA-256 of the source",
    "provenance": "origin of the capture",
    "provenance.is_model_name_certain": "whether the model's name is certain",
    "provenance.capture": "dynamo, export, pir or source",
    "provenance.framework_version": "version of torch or paddle",
    "provenance.library_version": "library of the model with its version",
    "provenance.graph_index": "index of the graph, if the model broke into several",
    "provenance.graph_count": "number of graphs of the model",
    "provenance.break_reason": "reason of the graph break",
    "provenance.source_hash": "hash of the sample's source text in the original GraphNet",
    "provenance.faults": "known defects of the record",
    "provenance.metadata": "other metadata of the sample, as JSON",
}
"""Descriptions by dotted name; fields of values (`_VALUE`) have the same meaning everywhere."""

_VALUE = {
    "dtype": "dtype of the tensor",
    "shape": "sizes at capture time",
    "symbolic_shape": "expression of each symbolic size; null for fixed sizes",
    "stride": "strides at capture time",
    "symbolic_stride": "expression of each symbolic stride; null for fixed strides",
}


SUBGRAPH_DESCRIPTIONS = {
    **DESCRIPTIONS,
    "subgraph_hash": "32 hexadecimal digits, equal for parts with the same signature and strides",
    "method": "how the part was found",
    "num_families": "number of families of graphs in which it occurs",
    "splits": "splits of these families",
    "has_statistics": "whether statistics or elements of all its input tensors are known",
}

COMPILER_BUG_DESCRIPTIONS = {
    **DESCRIPTIONS,
    "bug_title": "title of the bug",
    "bug_url": "address of the public report; null if no report is known",
    "bug_compiler": "compiler with the bug",
    "bug_versions": "versions that the report names",
    "bug_note": "the right result and the wrong one",
    "is_verified": "whether the bug occurs in the version of `bug_compiler` that `expected` names",
    "expected": "verdict of each compiler that was run on the graph",
    "expected.compiler": "name of the compiler",
    "expected.options": "its options, as JSON",
    "expected.num_variations": "number of sizes and numbers that the graph is called with",
    "expected.version": "version of the compiler",
    "expected.verdict": "expected verdict",
}

KERNEL_DESCRIPTIONS = {
    "schema_version": "version of the format",
    "kernel_id": "SHA-256 of the graph's hash, the compiler with version and options, the "
    "device's name, the threads, the position and the source",
    "subgraph_hash": "`subgraph_hash` of the graph in `subgraphs`",
    "sample_id": "id of the graph",
    "framework": "torch or paddle",
    "compiler": "compiler that generated the code",
    "compiler_version": "its version",
    "options": "its options, as JSON",
    "device": "cpu or cuda",
    "device_name": "name of the processor or GPU",
    "threads": "threads of the compiled code",
    "language": "language of the source",
    "entry": "name of the function",
    "source": "text of the function, which this library never runs",
    "launch": "how the function is launched, as JSON",
    "operators": "operators of the graph that the function computes",
    "ops": "positions of these operators; if null, `operators` are the compiler's own names",
    "position": "index of the kernel in its graph",
    "num_kernels": "number of kernels of the graph",
    "library_calls": "calls of the graph into libraries",
    "compile_time_s": "time to compile the whole graph",
    "latency_ms": "median time of a call of the whole graph",
}


def describe_columns(table: Table) -> Iterator[tuple[str, str, str]]:
    """Yield the dotted name, type and description of each column, followed by nested columns.

    Raises:
        KeyError: a column has no description.

    >>> from graphnet_datasets.schema import TABLES
    >>> next(describe_columns(TABLES["graphs"]))[:2]
    ('id', 'string')
    """
    for field in table.schema:
        yield from _describe(field.name, field.type, table.descriptions)


def _describe(
    name: str, kind: pa.DataType, descriptions: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    inner, is_list = kind, False
    while pa.types.is_list(inner):
        inner, is_list = inner.value_type, True
    type_name = "struct" if pa.types.is_struct(inner) else str(inner)
    last = name.rpartition(".")[2]
    is_value = name.startswith(("inputs.", "ops.results.")) and last in _VALUE
    yield (
        name,
        f"list of {type_name}" if is_list else type_name,
        _VALUE[last] if is_value else descriptions[name],
    )
    if pa.types.is_struct(inner):
        for field in inner:
            yield from _describe(f"{name}.{field.name}", field.type, descriptions)
