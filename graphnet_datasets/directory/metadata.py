"""Printing of `weight_meta.py` and `input_meta.py`, read by `frameworks/tensor_metadata.py`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from ..frameworks.text_form import TextForm
from ..sample import Input, Sample, Statistics
from ..sample.symbols import evaluate
from ..sample.vocabulary import WEIGHT_ROLES

MAX_PRINTED_ELEMENTS = 1_000_000
"""Tensors with more elements are stored as bytes outside of GraphNet's own files."""

_STORAGE: Mapping[str, str] = {
    "bool": "?", "uint8": "<u1", "int8": "<i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "float16": "<f2", "float32": "<f4",
    "float64": "<f8", "bfloat16": "<u2",
}  # fmt: skip
_PLAIN_DEVICE = re.compile(r"[a-z0-9_:]{1,40}\Z")


def print_tensor_metadata(
    sample: Sample, names: tuple[str, ...], form: TextForm
) -> tuple[str, str]:
    """Return the contents of `weight_meta.py` and `input_meta.py`.

    As in upstream directories, all inputs of a torch sample are in `weight_meta.py`.
    """
    weights, data = [], []
    for argument, name in zip(sample.inputs, names, strict=True):
        is_weight = form.has_data_among_weights or argument.role in WEIGHT_ROLES
        (weights if is_weight else data).append(_print_class(sample, argument, name, form))
    return "\n\n".join(weights), "\n\n".join(data)


def _print_class(sample: Sample, argument: Input, name: str, form: TextForm) -> str:
    statistics = argument.statistics or Statistics()
    if argument.role == "symbol":
        # Upstream represents an integer as a 0-dimensional tensor.
        shape, dtype = [], "int64"
        data = f"[{evaluate(argument.source_name, sample.hints)}]"
    else:
        shape, dtype = list(sample.shape_of(argument.value) or ()), argument.value.dtype
        data = _print_elements(argument)
    device = argument.device if _PLAIN_DEVICE.match(argument.device) else "cpu"
    lines = [
        f"class {form.class_prefix}{name}:",
        f'    name = "{name}"',
        f"    shape = {shape}",
        f'    dtype = "{form.dtype_prefix}{dtype}"',
        f'    device = "{device}"',
        f"    mean = {_print_number(statistics.mean)}",
        f"    std = {_print_number(statistics.std)}",
    ]
    if statistics.min is not None:
        lines.append(f"    min_val = {_print_number(statistics.min)}")
    if statistics.max is not None:
        lines.append(f"    max_val = {_print_number(statistics.max)}")
    return "\n".join([*lines, f"    data = {data}", ""])


def _print_number(number: float | None) -> str:
    if number is None or math.isfinite(number):
        return repr(number)
    return f'float("{number}")'


def _print_elements(argument: Input) -> str:
    storage = _STORAGE.get(argument.value.dtype or "")
    if argument.data is None or storage is None:
        return "None"
    elements = np.frombuffer(argument.data, storage)
    if elements.size > MAX_PRINTED_ELEMENTS:
        return "None"
    if argument.value.dtype == "bfloat16":
        elements = (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)
    words = elements.astype(str).tolist()
    if elements.dtype.kind == "f" and not np.isfinite(elements).all():
        words = [word if word[-1] not in "fn" else f'float("{word}")' for word in words]
    return f"[{', '.join(words)}]"
