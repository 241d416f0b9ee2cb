"""Import of recorded operator calls: the text files of BackendBench and torch's benchmarks.

A file has a line `Operator: aten.add.Tensor` per operator, followed by its calls with their numbers
of occurrences: `cnt: 12, ((T([2, 3], f32), T([3], f32)), {'alpha': 2})`. `T` is a tensor with its
shape, dtype and, unless contiguous, strides. Lines are parsed, never evaluated.
"""

from __future__ import annotations

import ast
import hashlib
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...analysis.columns import derived_columns
from ...atomic import new_directory
from ...decoding import read_text
from ...errors import DatasetExistsError, SampleError
from ...sample import Input, Op, Provenance, Sample, Value
from ...sample.arguments import Arg, DictArg, ListArg, Named, Ref
from ...sample.vocabulary import ITEM_SIZE_BYTES
from ...schema import sample_to_row
from ..layout import write_readme
from ..shards import write_shards
from ..table import to_arrow

DTYPES: Mapping[str, str] = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "c64": "complex64", "c128": "complex128", "b8": "bool", "u8": "uint8",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
}  # fmt: skip
"""Dtypes by their abbreviations in recorded calls."""
MAX_LINE_LENGTH = 100_000
_OPERATOR = re.compile(r"Operator: ([A-Za-z_]\w*\.[A-Za-z_]\w*(?:\.\w+)?)\s*\Z")
_CALL = re.compile(r"cnt: (\d{1,15}), (.*)\Z", re.DOTALL)
_DEVICE = re.compile(r"torch\.device\(['\"]?([a-z]+(?::\d+)?)['\"]?\)\Z")
_FORMATS = {"contiguous_format", "channels_last", "channels_last_3d", "preserve_format"}


def read_operator_calls(
    path: str | os.PathLike[str],
) -> tuple[list[Sample], dict[str, str]]:
    """Return a sample of one operator for each recorded call, and reasons for calls without one.

    Tensors are inputs in the order of the arguments. Their elements are unknown, so `make_inputs`
    draws them by dtype. `num_occurrences` is the number of calls. Reasons are by line, such as
    `line 3`.

    Raises:
        SampleError: the file cannot be read, or has no calls.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
    ...     _ = file.write("Operator: aten.relu.default\\ncnt: 3, ((T([2, 3], f16),), {})\\n")
    ...     file.flush()
    ...     (sample,), _ = read_operator_calls(file.name)
    >>> sample.ops[0].target, sample.inputs[0].value.dtype, sample.provenance.num_occurrences
    ('torch.ops.aten.relu.default', 'float16', 3)
    """
    try:
        text = read_text(path)
    except OSError as error:
        raise SampleError(f"`{path}` cannot be read: {error.strerror}.") from error
    samples: dict[str, Sample] = {}
    reasons: dict[str, str] = {}
    operator = ""
    for number, line in enumerate(text.splitlines(), 1):
        if match := _OPERATOR.match(line):
            operator = match[1]
        elif match := _CALL.match(line):
            try:
                sample = _sample_of(operator, int(match[1]), match[2])
            except SampleError as error:
                reasons[f"line {number}"] = str(error)
            else:
                samples.setdefault(sample.id, sample)
    if not samples and not reasons:
        raise SampleError(
            f"`{path}` has no recorded calls. Pass a file with lines like `Operator: "
            "aten.relu.default` and `cnt: 3, ((T([2, 3], f16),), {})`."
        )
    return list(samples.values()), reasons


def import_operator_calls(
    path: str | os.PathLike[str], out: str | os.PathLike[str]
) -> tuple[int, dict[str, str]]:
    """Write the recorded calls of a file as a dataset directory with the config `other`.

    Returns the number of samples, and the reasons of `read_operator_calls`.

    Raises:
        DatasetExistsError: `out` exists.
        SampleError: no call can be imported.
    """
    target = Path(out)
    if target.exists():
        raise DatasetExistsError(f"`{target}` exists. Choose another directory, or delete it.")
    samples, reasons = read_operator_calls(path)
    if not samples:
        place, reason = next(iter(reasons.items()))
        raise SampleError(f"No call of `{path}` can be imported. {place.capitalize()}: {reason}")
    rows = [{**sample_to_row(sample), **derived_columns(sample)} for sample in samples]
    with new_directory(target) as folder:
        write_shards([to_arrow(rows)], folder / "other", "train")
        write_readme(folder)
    return len(rows), reasons


def _sample_of(operator: str, count: int, text: str) -> Sample:
    """Return the sample of one line."""
    if not operator:
        raise SampleError("The call has no operator. Precede it with a line `Operator: NAME`.")
    if len(text) > MAX_LINE_LENGTH:
        raise SampleError(f"The line has more than {MAX_LINE_LENGTH:,} characters.")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SampleError(f"The arguments cannot be parsed: {error}.") from error
    inputs: list[Input] = []
    match tree:
        case ast.Tuple([ast.Tuple(positional), ast.Dict(keys, values)]):
            args = tuple(_argument(node, inputs) for node in positional)
            kwargs = tuple(
                (_text_of(key), _argument(value, inputs))
                for key, value in zip(keys, values, strict=True)
            )
        case _:
            raise SampleError("Expected a tuple of arguments and a dictionary of keywords.")
    digest = hashlib.sha256(f"{operator} {text}".encode()).hexdigest()[:12]
    return Sample(
        f"{operator}/{digest}",
        "torch",
        "other",
        tuple(inputs),
        (Op(f"torch.ops.{operator}", args, kwargs),),
        Ref(len(inputs)),
        provenance=Provenance(source="operator calls", num_occurrences=count),
    )


def _argument(node: ast.expr | None, inputs: list[Input], depth: int = 0) -> Arg:
    """Return an argument, and append its tensors to `inputs`."""
    if depth > 16:
        raise SampleError("The arguments are nested too deeply.")

    def items(nodes: list[ast.expr]) -> tuple[Arg, ...]:
        return tuple(_argument(item, inputs, depth + 1) for item in nodes)

    match node:
        case ast.Constant(str(text)):
            device = _DEVICE.match(text)
            return Named("device", device[1]) if device else _named(text) or text
        case ast.Constant(value) if value is None or isinstance(value, (bool, int, float)):
            return value
        case ast.UnaryOp(ast.USub(), operand):
            value = _argument(operand, inputs, depth + 1)
            if isinstance(value, (int, float)):
                return -value
        case ast.Name("inf" | "nan" as name):
            return math.inf if name == "inf" else math.nan
        case ast.Name(name) | ast.Attribute(ast.Name("torch" | "th"), name):
            if (named := _named(name)) is not None:
                return named
        case ast.List(nodes):
            return ListArg(items(nodes))
        case ast.Tuple(nodes):
            return items(nodes)
        case ast.Dict(keys, values):
            pairs = zip(keys, items(values), strict=True)
            return DictArg(tuple((_text_of(key), value) for key, value in pairs))
        case ast.Call(ast.Name("T"), arguments, []):
            inputs.append(Input("input", _tensor(arguments)))
            return Ref(len(inputs) - 1)
        case ast.Call(ast.Attribute(ast.Name("torch"), "device"), [ast.Constant(str(name))], []):
            return Named("device", name)
        case _:
            pass
    shown = "nothing" if node is None else ast.unparse(node)[:80]
    raise SampleError(f"The argument `{shown}` is unknown. Expected a tensor or a plain value.")


def _named(name: str) -> Named | None:
    """Return a constant of torch."""
    dtype = DTYPES.get(name, name.removeprefix("torch."))
    if dtype in ITEM_SIZE_BYTES:
        return Named("dtype", dtype)
    if dtype == "strided":
        return Named("layout", "strided")
    return Named("memory_format", dtype) if dtype in _FORMATS else None


def _tensor(arguments: list[ast.expr]) -> Value:
    """Return the type of `T(shape, dtype)` or `T(shape, dtype, strides)`."""
    shape, dtype, *strides = arguments if len(arguments) in (2, 3) else (None, None)
    match dtype:
        case ast.Name(name) | ast.Constant(str(name)) if name in DTYPES:
            stride = tuple(_sizes(strides[0])) if strides else None
            return Value(DTYPES[name], tuple(_sizes(shape)), stride)
        case _:
            raise SampleError(
                f"A tensor needs a shape and one of the dtypes {', '.join(DTYPES)}, for example "
                "`T([2, 3], f32)`."
            )


def _sizes(node: ast.expr | None) -> Iterator[int]:
    for item in node.elts if isinstance(node, ast.List | ast.Tuple) else [node]:
        if not (isinstance(item, ast.Constant) and type(item.value) is int):
            raise SampleError("The sizes and strides of a tensor must be integers.")
        yield item.value


def _text_of(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise SampleError("The keys of keywords must be names in quotes.")
