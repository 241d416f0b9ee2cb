"""Conversion of a sample's inputs to tensors on a device, symbol sizes and Python scalars."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from ...errors import MaterializeError
from ...inputs import MODES, Mode, find_normals, make_array, packed
from ...inputs.encoding import convert_with
from ...sample import Sample
from ...sample.symbols import evaluate
from ...sample.vocabulary import ITEM_SIZE_BYTES
from ..choices import check_choice, is_weight
from ..deadline import Deadline, drawing_until
from ..input_limits import check_inputs
from .device_draws import draw_normals, draws_on

Weights: TypeAlias = Literal["inputs", "parameters"]
TensorOrScalar: TypeAlias = "torch.Tensor | int | float | bool"

DTYPES: Mapping[str, torch.dtype] = {
    name: getattr(torch, name) for name in ITEM_SIZE_BYTES if hasattr(torch, name)
}
"""Torch dtypes by vocabulary name; torch 2.11 to 2.13 have all of them."""

_QUANTIZED = {"quint8": torch.uint8, "qint8": torch.int8, "qint32": torch.int32}


_PIECE = 32_768
"""Number of elements that torch converts on a single thread; larger copies start threads."""


def _narrow(values: npt.NDArray[np.float32], dtype: str, out: npt.NDArray) -> None:
    """Round to nearest, ties to even, like `inputs.encoding`, with the processor's instructions."""
    source = torch.from_numpy(values)
    is_half = dtype == "float16"
    target = torch.from_numpy(out if is_half else out.view(np.int16))
    if not is_half:
        target = target.view(torch.bfloat16)
    if len(values) <= _PIECE or torch.get_num_threads() == 1:
        target.copy_(source)
        return
    for to, of in zip(target.split(_PIECE), source.split(_PIECE), strict=True):
        to.copy_(of)


convert_with(_narrow)


def dtype_of(name: str) -> torch.dtype:
    """Return the torch dtype of a vocabulary name.

    Raises:
        MaterializeError: If the installed torch lacks the dtype.

    >>> dtype_of("bfloat16")
    torch.bfloat16
    """
    if name not in DTYPES:
        raise MaterializeError(
            f"`{name[:40]}` is not a dtype of torch {torch.__version__} "
            f"(accepted: {', '.join(DTYPES)})."
        )
    return DTYPES[name]


def to_tensor(array: npt.NDArray, dtype: str) -> torch.Tensor:
    """Return a contiguous CPU tensor with the bits of `array`.

    `array` contains elements of `dtype`. Dtypes that NumPy lacks (bfloat16, float8, complex32) are
    passed as unsigned integers with the same bits. A writable array shares its memory.

    >>> to_tensor(np.array([0x3F80], np.uint16), "bfloat16")
    tensor([1.], dtype=torch.bfloat16)
    """
    contiguous = np.ascontiguousarray(array).reshape(array.shape)
    if not contiguous.flags.writeable:
        contiguous = contiguous.copy()
    tensor = torch.from_numpy(contiguous)
    torch_dtype = dtype_of(dtype)
    if dtype in _QUANTIZED:
        # Samples do not record quantization scales; a scale of 1 keeps the integers unchanged.
        integers = tensor.view(_QUANTIZED[dtype])
        return torch.ops.aten._make_per_tensor_quantized_tensor(integers, 1.0, 0)
    return tensor if tensor.dtype == torch_dtype else tensor.view(torch_dtype)


def storage_elements(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Return the number of storage elements that `shape` needs with `stride`.

    >>> storage_elements((2, 3), (1, 2)), storage_elements((4, 3), (0, 1))
    (6, 3)
    """
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def concrete_stride(
    sample: Sample, index: int, shape: tuple[int, ...], sizes: Mapping[str, int] | None = None
) -> tuple[int, ...] | None:
    """Return the stride of input `index` in elements, or None if it is contiguous.

    Raises:
        MaterializeError: If the recorded stride is negative or its rank differs from the shape's.
    """
    recorded = sample.inputs[index].value.stride
    if recorded is None:
        return None
    values = sample.hints if sizes is None else sizes
    stride = tuple(evaluate(dim, values) for dim in recorded)
    if len(stride) != len(shape) or min(stride, default=0) < 0:
        raise MaterializeError(
            f"Input `{sample.input_names[index]}` of `{sample.id}` has shape {shape} and stride "
            f"{stride}; a stride has one non-negative entry per dimension."
        )
    return stride


def make_input(
    sample: Sample,
    index: int,
    seed: int = 0,
    mode: Mode = "replay",
    device: str | torch.device = "cpu",
    sizes: Mapping[str, int] | None = None,
) -> TensorOrScalar:
    """Return input `index`: a tensor on `device`, an int for a symbol, or a Python scalar.

    Raises:
        SampleError: If a symbol has no size, or the statistics are inconsistent.
        MaterializeError: If the stride does not match the shape.
    """
    if sample.inputs[index].role in ("symbol", "scalar"):
        return make_array(sample, index, seed, mode, sizes).item()
    return make_tensor(sample, index, seed, mode, device, sizes)


def make_tensor(
    sample: Sample,
    index: int,
    seed: int = 0,
    mode: Mode = "replay",
    device: str | torch.device = "cpu",
    sizes: Mapping[str, int] | None = None,
) -> torch.Tensor:
    """Return the tensor of input `index`, laid out with its recorded stride.

    Raises:
        SampleError: If a symbol has no size, or the statistics are inconsistent.
        MaterializeError: If the stride does not match the shape.
    """
    graph_input = sample.inputs[index]
    dtype, device = cast(str, graph_input.value.dtype), torch.device(device)
    if draws_on(device) and (plan := find_normals(sample, index, seed, mode, sizes)) is not None:
        normals, drawn, shape = plan
        whole = draw_normals(normals, dtype_of(dtype), device).view(drawn)
        stride = concrete_stride(sample, index, shape, sizes)
        return whole if stride is None else _laid_out(whole[_firsts(stride)], shape, stride)
    array = make_array(sample, index, seed, mode, sizes)
    stride = concrete_stride(sample, index, array.shape, sizes)
    if stride is None:
        return to_tensor(array, dtype).to(device)
    # Of elements that share memory, only the first is copied. The layout is created on the
    # device, because copying between devices would not preserve gaps and overlaps.
    first = array[_firsts(stride)]
    return _laid_out(to_tensor(first, dtype).to(device), array.shape, stride)


def _firsts(stride: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(0, 1) if step == 0 else slice(None) for step in stride)


def _laid_out(first: torch.Tensor, shape: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
    if shape == first.shape and stride == first.stride():
        return first
    return _with_stride(first, shape, stride)


def make_inputs(
    sample: Sample,
    seed: int = 0,
    mode: Mode = "replay",
    device: str | torch.device = "cpu",
    weights: Weights = "inputs",
    sizes: Mapping[str, int] | None = None,
    memory_limit_bytes: int | None = None,
    time_limit_s: float | None = None,
) -> dict[str, TensorOrScalar]:
    """Return the arguments of the materialized sample by canonical name, in argument order.

    With `weights="parameters"`, return only data inputs, symbols and scalars.

    Raises:
        MemoryLimitError: If they take more memory than `memory_limit_bytes` (default: the memory
            of this machine).
        TimeLimitError: If creating them takes longer than `time_limit_s` (default: two minutes).
        MaterializeError: If `weights` or `mode` is unknown.

    >>> from graphnet_datasets.sample import Input, Sample, Value
    >>> sample = Sample("example/identity", "torch", "other",
    ...     (Input("input", Value("float16", (2, 3))),), (), ())
    >>> make_inputs(sample)["input_0"].dtype
    torch.float16
    """
    check_choice("weights", weights, ("inputs", "parameters"))
    check_choice("mode", mode, MODES)
    check_inputs(sample, sizes, memory_limit_bytes, with_weights=weights == "inputs")
    deadline = Deadline(time_limit_s)
    tensors: dict[str, TensorOrScalar] = {}
    phase = f"Generating the inputs of `{sample.id}`"
    with drawing_until(deadline, phase), packed_on(device):
        for index, (name, graph_input) in enumerate(
            zip(sample.input_names, sample.inputs, strict=True)
        ):
            if weights == "inputs" or not is_weight(graph_input):
                tensors[name] = make_input(sample, index, seed, mode, device, sizes)
    return tensors


def packed_on(device: str | torch.device) -> contextlib.AbstractContextManager[None]:
    """Allocate tensors that stay on the host side by side.

    Host memory of tensors that are copied to another device is reused for the next tensor.
    """
    return packed() if torch.device(device).type == "cpu" else contextlib.nullcontext()


def _with_stride(
    first: torch.Tensor, shape: tuple[int, ...], stride: tuple[int, ...]
) -> torch.Tensor:
    """Lay out elements with `stride`; `first` has size 1 along axes of stride 0.

    Of overlapping elements (sliding windows), the first are kept.
    """
    size = storage_elements(tuple(first.shape), stride)
    if size < first.numel():
        return first.reshape(-1)[:size].clone().as_strided(shape, stride)
    storage = torch.zeros(size, dtype=first.dtype, device=first.device)
    try:
        storage.as_strided(first.shape, stride).copy_(first)
    except RuntimeError as error:
        raise MaterializeError(
            f"A tensor of shape {shape} cannot be laid out with stride {stride}: {error}"
        ) from error
    return storage.as_strided(shape, stride)
