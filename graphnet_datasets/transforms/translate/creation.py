"""Rules for operators that create tensors from numbers."""
# ruff: noqa: ARG001 - the parameters of a rule are those of its operator

from __future__ import annotations

from typing import Any

from ...sample.arguments import Named
from .elementwise import on_numbers
from .handles import Number, RefusedError, Tensor
from .layout import sizes_of
from .registry import rule
from .writer import EXPECTED, Writer


def _filled(w: Writer, sizes: list[Any], value: Any) -> Tensor:
    requested_sizes = [
        requested if isinstance(requested, Number) else size
        for requested, size in zip(sizes, w.shape, strict=True)
    ]
    result = w.full(requested_sizes, value, w.dtype)
    return Tensor(result.ref, w.dtype, w.shape)


@rule("torch.zeros", "torch.Tensor.new_zeros", "torch.empty", "torch.Tensor.new_empty")
def zeros(w: Writer, *args: Any, **_: Any) -> Tensor:
    return _filled(w, _sizes(args), 0)  # any contents are allowed, including zeros


@rule("torch.ones", "torch.Tensor.new_ones")
def ones(w: Writer, *args: Any, **_: Any) -> Tensor:
    return _filled(w, _sizes(args), 1)


def _sizes(args: tuple[Any, ...]) -> list[Any]:
    return sizes_of(args[1:] if args and isinstance(args[0], Tensor) else args)


@rule("torch.full")
def full(w: Writer, size: Any, fill_value: Any, **_: Any) -> Tensor:
    return _filled(w, list(size), fill_value)


@rule("torch.Tensor.new_full")
def new_full(w: Writer, input: Tensor, size: Any, fill_value: Any, **_: Any) -> Tensor:
    return _filled(w, list(size), fill_value)


def _like(w: Writer, x: Tensor, value: Any) -> Tensor:
    return w.emit(
        "full_like", x, value, Named("dtype", w.dtype), EXPECTED, dtype=w.dtype, shape=x.shape
    )


@rule("zeros_like", "empty_like")
def zeros_like(w: Writer, input: Tensor, **_: Any) -> Tensor:
    return _like(w, input, 0.0)


@rule("ones_like")
def ones_like(w: Writer, input: Tensor, **_: Any) -> Tensor:
    return _like(w, input, 1.0)


@rule("full_like")
def full_like(w: Writer, input: Tensor, fill_value: Any, **_: Any) -> Tensor:
    return _like(w, input, fill_value)


@rule("torch.arange")
def arange(w: Writer, start: Any, end: Any = None, step: Any = 1, **_: Any) -> Tensor:
    if end is None:
        start, end = 0, start
    if any(isinstance(bound, Tensor) for bound in (start, end, step)):
        raise RefusedError("A tensor as bound or step is not supported.")
    dtype = Named("dtype", w.dtype)
    return w.call("paddle.arange", start, end, step, dtype, dtype=w.dtype, shape=w.shape)


@rule("torch.linspace")
def linspace(w: Writer, start: Any, end: Any, steps: int, **_: Any) -> Tensor:
    """Write `linspace`; like torch, paddle computes from both ends to the middle."""
    dtype = Named("dtype", w.dtype)
    ends = [w.full((), bound, w.dtype) for bound in (start, end)]
    number = w.full((1,), steps, "int32")
    return w.emit("linspace", *ends, number, dtype, EXPECTED, dtype=w.dtype, shape=w.shape)


@rule("torch.tensor", "torch.scalar_tensor", "torch.as_tensor")
def tensor(w: Writer, data: Any, **_: Any) -> Tensor:
    if isinstance(data, Tensor):
        return w.cast(data, w.dtype)
    if isinstance(data, bool | int | float):
        return w.full((), data, w.dtype)
    if isinstance(data, list | tuple) and all(
        isinstance(item, bool | int | float) for item in data
    ):
        dtype = Named("dtype", w.dtype)
        return w.call("paddle.to_tensor", list(data), dtype, dtype=w.dtype, shape=(len(data),))
    raise RefusedError("Only tensors of numbers are supported.")


@rule("torch.complex")
def complex_(w: Writer, real: Tensor, imag: Tensor) -> Tensor:
    return w.binary("complex", real, imag, w.dtype)


@rule("torch.eye")
def eye(w: Writer, n: int, m: int | None = None, **_: Any) -> Tensor:
    dtype = Named("dtype", w.dtype)
    return w.emit("eye", n, n if m is None else m, dtype, EXPECTED, dtype=w.dtype, shape=w.shape)


@rule("one_hot")
def one_hot(w: Writer, input: Tensor, num_classes: int = -1) -> Tensor:
    if num_classes < 0:
        raise RefusedError("Its number of classes depends on values.")
    result = w.emit(
        "one_hot", input, num_classes, dtype="float32", shape=(*input.shape, num_classes)
    )
    return w.cast(result, "int64")


@rule("torch.sym_int", "torch.sym_float", "torch.sym_max", "torch.sym_min", "operator.index")
def symbolic(w: Writer, *numbers: Any) -> Any:
    last = w.target.rpartition(".")[2]
    if any(isinstance(number, Number) for number in numbers):
        if last in ("sym_int", "index"):
            return numbers[0]
        raise RefusedError("Paddle has no such operator on numbers.")
    functions = {"sym_int": int, "sym_float": float, "sym_max": max, "sym_min": min, "index": int}
    return on_numbers(w, functions[last], *numbers)


@rule("torch._C._log_api_usage_once", "torch._C._set_grad_enabled",
      "torch._functorch.predispatch.lazy_load_decompositions")  # fmt: skip
def nothing(w: Writer, *_: Any, **__: Any) -> None:
    return None


@rule("torch.amp.autocast_mode._enter_autocast")
def enter_autocast(w: Writer, device: Any, dtype: Any, is_enabled: bool, *_: Any) -> None:
    if is_enabled:
        raise RefusedError("Autocast chooses dtypes at run time.")


@rule("torch.amp.autocast_mode._exit_autocast")
def exit_autocast(w: Writer, mode: Any) -> None:
    return None
