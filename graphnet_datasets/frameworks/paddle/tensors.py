"""Paddle tensors for a sample's inputs, with the same elements as in torch."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import paddle

from ...errors import MaterializeError
from ...inputs import MODES, Mode, make_array
from ...sample import Sample
from ..choices import check_choice, is_weight
from ..deadline import Deadline, drawing_until
from ..input_limits import check_inputs
from .value_types import DTYPE_NAMES

Weights: TypeAlias = Literal["inputs", "parameters"]
TensorOrScalar: TypeAlias = "paddle.Tensor | int | float | bool"

_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


@functools.cache
def dtypes() -> Mapping[str, Any]:
    """Return the paddle dtypes that the installed paddle has, by canonical name."""
    return {name: vars(paddle)[name] for name in DTYPE_NAMES if name in vars(paddle)}


def dtype_of(name: str) -> Any:
    """Return the paddle dtype with the canonical name `name`.

    Raises:
        MaterializeError: the installed paddle does not have the dtype.

    >>> str(dtype_of("bfloat16"))
    'paddle.bfloat16'
    """
    if name not in dtypes():
        raise MaterializeError(
            f"`{name[:40]}` is not a dtype of paddle (accepted: {', '.join(dtypes())})."
        )
    return dtypes()[name]


def place_of(device: str) -> Any:
    """Return the place for a device name: `cpu`, `gpu`, `gpu:0` or `cuda:0`.

    Raises:
        MaterializeError: the name is not a Paddle device, or the installed paddle cannot use the
            device.

    >>> place_of("cpu")
    Place(cpu)
    """
    kind, _, number = str(device).replace("cuda", "gpu").partition(":")
    if kind == "cpu" and not number:
        return paddle.CPUPlace()
    if kind != "gpu" or not (number or "0").isdecimal():
        raise MaterializeError(
            f"`device={device!r}` is not a device of paddle (accepted: cpu, gpu, gpu:0, …)."
        )
    if not paddle.device.is_compiled_with_cuda() or paddle.device.cuda.device_count() == 0:
        raise MaterializeError(
            f"`device={device!r}`: this paddle cannot reach a GPU. Install `paddlepaddle-gpu` on a "
            "machine that has one, or choose `device='cpu'`."
        )
    return paddle.CUDAPlace(int(number or 0))


def to_tensor(array: npt.NDArray, dtype: str, place: Any = None) -> paddle.Tensor:
    """Return a tensor of dtype `dtype` with the same bits as `array`.

    Elements of dtypes that NumPy lacks (bfloat16, float8) are passed as unsigned integers with the
    same bits.

    >>> to_tensor(np.array([0x3F80, 0x4000], np.uint16), "bfloat16").astype("float32").tolist()
    [1.0, 2.0]
    """
    wanted = dtype_of(dtype)
    contiguous = np.ascontiguousarray(array).reshape(array.shape)
    tensor = paddle.to_tensor(contiguous, place=paddle.CPUPlace() if place is None else place)
    if dtype in _FLOAT8:
        return tensor.view(wanted)
    # Paddle interprets uint16 arrays as bfloat16.
    if tensor.dtype != wanted:
        raise MaterializeError(f"An array of {array.dtype} does not hold elements of {dtype}.")
    return tensor


def make_input(
    sample: Sample,
    index: int,
    seed: int = 0,
    mode: Mode = "replay",
    device: str = "cpu",
    sizes: Mapping[str, int] | None = None,
) -> TensorOrScalar:
    """Return input `index`: a tensor on `device`, an int for a symbol or a number for a scalar.

    Raises:
        SampleError: a symbol has no size, or the statistics contradict themselves.
        MaterializeError: the installed paddle does not have the dtype or device.
    """
    sample_input = sample.inputs[index]
    array = make_array(sample, index, seed, mode, sizes)
    if sample_input.role in ("symbol", "scalar"):
        return array.item()
    return to_tensor(array, cast(str, sample_input.value.dtype), place_of(device))


def make_inputs(
    sample: Sample,
    seed: int = 0,
    mode: Mode = "replay",
    device: str = "cpu",
    weights: Weights = "inputs",
    sizes: Mapping[str, int] | None = None,
    memory_limit_bytes: int | None = None,
    time_limit_s: float | None = None,
) -> dict[str, TensorOrScalar]:
    """Return the arguments of the materialized sample by canonical name, in argument order.

    With `weights="parameters"`, return only the remaining arguments: data inputs, symbols and
    scalars.

    Raises:
        MemoryLimitError: the inputs need more than `memory_limit_bytes` (default: the memory of
            this machine).
        TimeLimitError: generating the inputs takes longer than `time_limit_s` (default: two
            minutes).
        MaterializeError: `weights` or `mode` is unknown.

    >>> from graphnet_datasets.sample import Input, Sample, Value
    >>> sample = Sample("example/identity", "paddle", "other",
    ...     (Input("input", Value("float16", (2, 3))),), (), ())
    >>> str(make_inputs(sample)["input_0"].dtype)
    'paddle.float16'
    """
    check_choice("weights", weights, ("inputs", "parameters"))
    check_choice("mode", mode, MODES)
    with_weights = weights == "inputs"
    check_inputs(sample, sizes, memory_limit_bytes, with_weights=with_weights, are_laid_out=False)
    deadline = Deadline(time_limit_s)
    arguments: dict[str, TensorOrScalar] = {}
    with drawing_until(deadline, f"Generating the inputs of `{sample.id}`"):
        for index, (name, sample_input) in enumerate(
            zip(sample.input_names, sample.inputs, strict=True)
        ):
            if weights == "inputs" or not is_weight(sample_input):
                arguments[name] = make_input(sample, index, seed, mode, device, sizes)
    return arguments
