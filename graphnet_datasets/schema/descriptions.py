"""One-line descriptions of the columns of the `graphs` table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

DESCRIPTIONS = {
    "schema_version": "version of the format",
    "id": "name of the graph, `library/model`, with a suffix for a variant",
    "framework": "torch or paddle: whose operators it calls",
    "task": "cv, nlp, audio, multimodal, scientific or other",
    "subtask": "what the model is for within its task; null where its name does not tell",
    "source": "repository of the code of the model",
    "model_name": "class or function that makes the model",
    "kind": "graph, subgraph, joint, forward or backward",
    "mode": "eval or train",
    "dtype": "dtype of most elements of the tensors that the graph takes, weights included",
    "license": "SPDX name of the licence of the model's code",
    "tags": "`small`: milliseconds on a laptop; `truncated`: fewer layers than published",
    "num_ops": "number of operators",
    "num_inputs": "number of arguments, weights included",
    "num_outputs": "number of results",
    "num_params": "elements of all parameters",
    "input_bytes": "bytes of all tensors that the graph takes",
    "is_dynamic": "whether it is known to run at other sizes",
    "parent_id": "of a part or a transformed graph: the graph that it was made of",
    "parent_ops": "of a part: positions of its operators in that graph",
    "piece_index": "of a model that breaks into several graphs (`parent_id`): which one, from 0",
    "num_pieces": "how many graphs that model gives; null for a whole one",
    "break_reason": "what ended the piece",
    "num_occurrences": "of a part: how often it occurs",
    "calibration": "`calibrated`, `unneeded`, `shared` (found at other sizes or for a graph of the "
    "same weights), or null where nobody has tried",
    "library": "library of the builder's catalog",
    "library_version": "its version at the capture",
    "catalog_line": "the line of the catalog that made the graph",
    "overrides": "what that line changes of the model's configuration, as JSON",
    "input_specification": "the example inputs of that line",
    "seed": "seed of random buffers and of example inputs",
    "model_source_hash": "SHA-256 of the file that defines the model's class",
    "weights_origin": "`initialised`: statistics are those of drawn weights; null: not measured",
    "is_truncated": "whether it has fewer layers than published",
    "is_reimplementation": "whether this project wrote the architecture itself",
    "split_group": "what nearly equal graphs share; a group is in one split",
    "split": "train, validation or test",
    "family": "hash of the sequence of operators, repeats collapsed",
    "structure_hash": "hash of the graph without the shapes of its inputs",
    "signature_hash": "hash of the graph with shapes: its identity",
    "flops": "floating-point operations of one run; null where elements decide sizes",
    "flops_coverage": "share of operators that have a formula",
    "bytes_moved": "bytes that eager's kernels read and write",
    "arithmetic_intensity": "operations per byte moved",
    "peak_memory_bytes": "most that inputs, weights and live values take at one time",
    "op_tags": "what the graph is made of: attention, convolution …",
    "op_histogram": "calls per operator",
    "op_histogram.target": "name of the operator",
    "op_histogram.count": "how often it is called",
    "validation": "what each check found",
    "validation.check": "name of the check",
    "validation.outcome": "passed, failed or skipped",
    "validation.reason": "why it failed or was skipped",
    "validation.versions": "software that the outcome depends on",
    "validation.versions.name": "its name",
    "validation.versions.version": "its version",
    "why_excluded": "reasons of the checks that failed; null where none did",
    "symbols": "symbolic dimensions",
    "symbols.name": "name of the symbol",
    "symbols.hint": "its value at the capture",
    "symbols.lower": "least value",
    "symbols.upper": "greatest value",
    "constraints": "relations between symbols that the graph relies on",
    "constraints.left": "expression",
    "constraints.relation": "`==`, `<=` …",
    "constraints.right": "expression",
    "inputs": "arguments of the graph, in their order",
    "inputs.role": "input, parameter, buffer, constant, symbol or scalar",
    "inputs.source_name": "name in the model",
    "inputs.device": "where it was",
    "inputs.mean": "mean of its elements",
    "inputs.std": "standard deviation",
    "inputs.min": "least element",
    "inputs.max": "greatest element",
    "inputs.is_measured": "whether these were measured; null where there are none",
    "inputs.data": "its elements, little-endian, where they are stored and not decimal",
    "decimal_elements": "stored elements of float32 inputs that are decimal fractions",
    "decimal_elements.inputs": "numbers of these inputs",
    "decimal_elements.lengths": "how many elements each has",
    "decimal_elements.places": "decimal places: elements are whole numbers over 10 to this power",
    "decimal_elements.byte_0": "lowest byte of each number; 0, 1, 2, 3 stand for 0, -1, 1, -2",
    "decimal_elements.byte_1": "second byte",
    "decimal_elements.byte_2": "third byte",
    "decimal_elements.byte_3": "highest byte",
    "repeated_elements": "inputs whose stored elements an earlier one holds",
    "repeated_elements.input": "number of the input",
    "repeated_elements.first": "number of the earlier input",
    "calibrated_inputs": "statistics that make the graph behave, by input",
    "calibrated_inputs.input": "number of the input",
    "calibrated_inputs.mean": "mean",
    "calibrated_inputs.std": "standard deviation",
    "calibrated_inputs.min": "least element",
    "calibrated_inputs.max": "greatest element",
    "ops": "operators, in an order in which they can run",
    "ops.target": "name of the operator",
    "ops.operands": "numbers of the values that it takes: inputs first, then one an operator",
    "ops.args": "template of its arguments, JSON in which `{}` is the next operand",
    "ops.kwargs": "template of its keyword arguments",
    "ops.results": "what is known of the values that it gives",
    "ops.module": "module of the model that called it",
    "outputs": "what the graph returns",
    "outputs.operands": "numbers of the values in it",
    "outputs.structure": "their nesting, as a template",
    "custom_operators": "operators that the table lacks; never run unasked",
    "custom_operators.name": "qualified name",
    "custom_operators.schema": "schema",
    "custom_operators.source": "Python source",
    "custom_operators.source_hash": "SHA-256 of the source",
    "provenance": "how the capture was made",
    "provenance.is_model_name_certain": "whether the model's name is known for sure",
    "provenance.capture": "dynamo, export, pir or source",
    "provenance.framework_version": "version of torch or paddle",
    "provenance.library_version": "library of the model, with its version",
    "provenance.graph_index": "number of the graph, where the model broke into several",
    "provenance.graph_count": "how many there were",
    "provenance.break_reason": "why it broke",
    "provenance.source_hash": "hash of the sample's text in the original GraphNet",
    "provenance.faults": "known faults of the record",
    "provenance.metadata": "what else came with the sample, as JSON",
}
"""Descriptions by dotted name; fields of values (`_VALUE`) have the same meaning everywhere."""

_VALUE = {
    "dtype": "dtype of the tensor",
    "shape": "sizes at the capture",
    "symbolic_shape": "an expression for each symbolic size, null for fixed ones",
    "stride": "strides at the capture",
    "symbolic_stride": "likewise for strides",
}


def describe_columns(
    schema: pa.Schema, descriptions: Mapping[str, str] = DESCRIPTIONS
) -> Iterator[tuple[str, str, str]]:
    """Yield the dotted name, type and description of each column, followed by nested columns.

    Raises:
        KeyError: a column has no description.

    >>> list(describe_columns(pa.schema([("id", pa.string())])))[0][:2]
    ('id', 'string')
    """
    for field in schema:
        yield from _describe(field.name, field.type, descriptions)


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
