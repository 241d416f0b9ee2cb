"""Integer arguments of operators that may be sizes.

Operators that are not in the table keep their literals: axes, indices, strides of convolutions and
operands of arithmetic are unrelated to sizes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from ...sample import Op
from ...sample.arguments import ListArg, Named, SliceArg
from ...sample.targets import base_name

Family: TypeAlias = Literal[
    "reshape", "expand", "create", "slice", "parts", "size", "constant", "repeat", "mean"
]
"""Most likely meaning of a literal of an operator.

`reshape`: sizes with as many elements as the operand. `expand`, `repeat`: sizes relative to the
operand. `create`: sizes of the result. `slice`: bounds along an axis. `parts`: sizes that add up to
the size of an axis. `size`: requested sizes (interpolation, transforms). `constant`: rarely a size,
such as a window or an amount of padding. `mean`: divisor of a sum along an axis.
"""


@dataclasses.dataclass(frozen=True)
class Places:
    """Positions of an operator's literals: a range of arguments, and keywords."""

    family: Family
    first: int
    last: int = 64
    keywords: tuple[str, ...] = ()

    def holds(self, position: int) -> bool:
        """Return whether literals of the argument at a position count."""
        return self.first <= position <= self.last


_SHAPE = ("size", "shape", "sizes")

_TABLE: Mapping[str, Places] = {
    **dict.fromkeys(
        ("view", "reshape", "view_copy", "_unsafe_view"), Places("reshape", 1, keywords=_SHAPE)
    ),
    "unflatten": Places("reshape", 2, keywords=("sizes", "unflattened_size")),
    **dict.fromkeys(
        ("expand", "broadcast_to", "expand_copy"), Places("expand", 1, keywords=_SHAPE)
    ),
    **dict.fromkeys(("repeat", "tile"), Places("repeat", 1, keywords=("repeats", "dims"))),
    **dict.fromkeys(
        ("new_zeros", "new_ones", "new_empty"), Places("create", 1, keywords=_SHAPE)
    ),
    "new_full": Places("create", 1, 1, (*_SHAPE,)),
    **dict.fromkeys(
        ("zeros", "ones", "empty", "rand", "randn"), Places("create", 0, keywords=_SHAPE)
    ),
    **dict.fromkeys(("full", "full_with_tensor"), Places("create", 0, 0, _SHAPE)),
    "arange": Places("create", 0, 1, ("start", "end")),
    "linspace": Places("create", 0, 2, ("start", "end", "steps")),
    "eye": Places("create", 0, 1, ("n", "m")),
    "randperm": Places("create", 0, 0, ("n",)),
    "randint": Places("create", 2, 2, ("size",)),
    **dict.fromkeys(("tril_indices", "triu_indices"), Places("create", 0, 1, ("row", "col"))),
    **dict.fromkeys(("gaussian", "uniform"), Places("create", 0, 0, ("shape",))),
    "getitem": Places("slice", 1),
    "setitem": Places("slice", 1, 1),
    "narrow": Places("slice", 2, keywords=("start", "length")),
    "slice": Places("slice", 2, 3, ("start", "end", "starts", "ends")),
    **dict.fromkeys(
        ("split", "split_with_sizes", "tensor_split", "unsafe_split"),
        Places("parts", 1, 1, ("split_size_or_sections", "split_size", "sections")),
    ),
    **dict.fromkeys(
        ("interpolate", "upsample", "affine_grid", "upsample_nearest", "upsample_bilinear"),
        Places("size", 1, 1, ("size",)),
    ),
    **dict.fromkeys(
        ("nearest_interp", "bilinear_interp", "bicubic_interp", "linear_interp"),
        Places("size", 5, 7),
    ),
    **dict.fromkeys(
        ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2",
         "fftn", "ifftn", "rfftn", "irfftn"),
        Places("size", 1, 1, ("n", "s")),
    ),
    "fft_c2r": Places("size", 4, 4, ("last_dim_size",)),
    **dict.fromkeys(("fftfreq", "rfftfreq"), Places("size", 0, 0, ("n",))),
    **dict.fromkeys(
        ("hann_window", "hamming_window", "blackman_window"), Places("constant", 0, 0)
    ),
    "as_strided": Places("size", 1, 2, ("size", "stride")),
    "fold": Places("size", 1, 1, ("output_size",)),
    "unfold": Places("constant", 1, 3),
    "istft": Places("size", 64, keywords=("length",)),
    **dict.fromkeys(
        ("max_unpool1d", "max_unpool2d", "max_unpool3d"),
        Places("size", 64, keywords=("output_size",)),
    ),
    "pad": Places("constant", 1, 1, ("pad", "paddings")),
    "pad3d": Places("constant", 1, 1),
    **dict.fromkeys(
        ("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
         "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"),
        Places("constant", 1, 1, ("output_size",)),
    ),
    **dict.fromkeys(
        ("avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"),
        Places("constant", 1, 2, ("kernel_size", "stride")),
    ),
    "layer_norm": Places("constant", 1, 1, ("normalized_shape",)),
    "repeat_interleave": Places("constant", 1, 1, ("repeats", "output_size")),
    "one_hot": Places("constant", 1, 1, ("num_classes",)),
    "roll": Places("constant", 1, 1, ("shifts",)),
    "topk": Places("constant", 1, 1, ("k",)),
    "tensor": Places("constant", 0, 0),
    **dict.fromkeys(("truediv", "itruediv", "div", "div_", "divide"), Places("mean", 1, 1)),
    "_vmap_increment_nesting": Places("constant", 0, 0),
    "_remove_batch_dim": Places("constant", 2, 2),
}  # fmt: skip


def places_of(op: Op) -> Places | None:
    """Return the positions of literals that may be sizes, or None.

    >>> places_of(Op("torch.Tensor.view", ())).family, places_of(Op("torch.exp", ()))
    ('reshape', None)
    """
    places = _TABLE.get(base_name(op.target))
    if places is not None and op.target.startswith("torch.Tensor.") and places.first == 0:
        return None  # the first argument of a method is a tensor
    return places


def find_literals(op: Op) -> tuple[int, ...]:
    """Return the integers of an operator that may be sizes, in the order of `replace_literals`.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> find_literals(Op("torch.Tensor.view", (Ref(0), 2, -1, 64)))
    (2, 64)
    >>> double = Named("dtype", "float64")  # end of a paddle `arange`
    >>> find_literals(Op("paddle._C_ops.full", (ListArg((1,)), 32.0, double)))
    (1, 32)
    """
    numbers: list[int] = []

    def note(number: int) -> int:
        numbers.append(number)
        return number

    _map(op, note)
    return tuple(numbers)


def replace_literals(op: Op, numbers: Iterator[Any]) -> Op:
    """Return the operator with its literals replaced.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> replace_literals(Op("torch.zeros", (2, 3)), iter([Ref(0), 5])).args
    (Ref(index=0), 5)
    """
    return _map(op, lambda _: next(numbers))


def _is_bound(op: Op) -> bool:
    """Return whether an operator creates a number used as a bound of paddle's `arange`.

    Such bounds are tensors of one float64 element; sizes of other operators are integers.
    """
    if op.target != "paddle._C_ops.full" or len(op.args) < 3:
        return False
    shape, value, dtype = op.args[:3]
    return (
        shape == ListArg((1,))
        and isinstance(dtype, Named)
        and dtype.name == "float64"
        and isinstance(value, float)
        and value.is_integer()
        and value >= 2
    )


def _map(op: Op, change: Callable[[int], Any]) -> Op:
    places = places_of(op)
    if places is None:
        return op
    only_slices = base_name(op.target) in ("getitem", "setitem")

    def walk(arg: Any) -> Any:
        if type(arg) is int:
            return change(arg) if arg >= 1 and not only_slices else arg
        if isinstance(arg, tuple):
            return tuple(map(walk, arg))
        if isinstance(arg, ListArg):
            return ListArg(tuple(map(walk, arg.items)))
        if isinstance(arg, SliceArg):
            start, stop = (
                change(bound) if type(bound) is int and bound >= 1 else bound
                for bound in (arg.start, arg.stop)
            )
            return SliceArg(start, stop, arg.step)
        return arg

    def walk_at(at: int, arg: Any) -> Any:
        if at == 1 and _is_bound(op):
            changed = change(int(arg))
            return float(changed) if isinstance(changed, int) else changed
        return walk(arg) if places.holds(at) else arg

    return dataclasses.replace(
        op,
        args=tuple(walk_at(at, arg) for at, arg in enumerate(op.args)),
        kwargs=tuple(
            (name, walk(arg) if name in places.keywords else arg) for name, arg in op.kwargs
        ),
        results=None,
    )
