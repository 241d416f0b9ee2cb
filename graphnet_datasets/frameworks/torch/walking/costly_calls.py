"""Calls that would cost much without holding a large tensor: refused before they are made.

`9**9**9**9`, `[0] * 10**10`, `"%1000000000d" % 1`, a tensor of one element expanded and taken apart
into 10**12 tensors. Large tensors are the business of `shapes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ....errors import MemoryLimitError, TimeLimitError
from ....sample import Input, Op
from ....sample.arguments import Ref
from ..operators import Operator, dispatched_names, resolve

MAX_BITS = 64
"""Python integers of a graph are sizes and indices, which fit in 64 bits."""

MAX_ITEMS = 100_000
"""Items of one Python list or tuple; the largest sample of upstream has 4,800 operators in all."""

MAX_DECIMALS = 400
"""`round(x, n)` computes 10**n; a float has no more than 324 decimals."""

MAX_ITERATIONS = 10_000
"""Rounds of a loop that an argument counts: powers of matrices, degrees, refinements."""

_LOOPS = frozenset(
    {
        "linalg_matrix_power", "lobpcg", "matrix_power", "multigammaln", "mvlgamma", "pca_lowrank",
        "polygamma", "special_multigammaln", "special_polygamma", "svd_lowrank",
    }
)  # fmt: skip
_WINDOWS = frozenset(
    {
        "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d",
        "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices",
        "max_pool3d", "max_pool3d_with_indices", "mkldnn_max_pool2d",
    }
)  # fmt: skip
"""Pools whose kernels go round their windows even where these lie outside of the input; those that
are told their result's size go round it even where it has no elements."""

_COMPARISONS = frozenset({"eq", "ne", "is_", "is_not"})
_SPLITS_BY_SIZE = frozenset({"split", "split_copy", "unsafe_split"})
_SPLITS_BY_COUNT = frozenset(
    {"chunk", "unsafe_chunk", "tensor_split", "hsplit", "vsplit", "dsplit"}
)


def check_call(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check the operands of a call that is about to be made.

    Raises:
        MemoryLimitError: it would build a huge integer, text or list.
        TimeLimitError: it would go round a loop too often.

    >>> from ..operators import lookup
    >>> check_call(lookup("operator.pow"), (2, 10), {})
    """
    if operator.name.startswith(("operator.", "builtins.", "math.")):
        _check_python(operator.last_name, args)
    elif operator.kind == "method" or operator.name.startswith("torch."):
        _check_loops(operator, args, kwargs)
        _check_packet(operator, args, kwargs)
        _check_parts(operator.last_name, args, kwargs)


def check_result(result: Any) -> None:
    """Check what a call gave: integers of at most 64 bits, sequences of at most 100,000 items.

    Raises:
        MemoryLimitError: it is larger.
    """
    if type(result) is int and result.bit_length() > MAX_BITS:
        raise MemoryLimitError(f"gives an integer of {result.bit_length()} bits, not 64 at most.")
    if isinstance(result, tuple | list) and len(result) > MAX_ITEMS:
        raise MemoryLimitError(f"gives {len(result)} items, not {MAX_ITEMS} at most.")


def check_repeats(op: Op, args: Sequence[Any], inputs: Sequence[Input]) -> None:
    """Refuse `[0] * n` for an `n` that comes out of the graph: only a run tells how large it is.

    That of a symbol among the inputs is known, and bounded by `check_call`.

    Raises:
        MemoryLimitError: a list or tuple is repeated so.
    """
    if op.target not in ("operator.mul", "operator.imul"):
        return
    is_list = [isinstance(arg, tuple | list) for arg in args]
    counts = zip(op.args, is_list, strict=False)
    if any(is_list) and any(
        isinstance(arg, Ref)
        and not listed
        and not (arg.index < len(inputs) and inputs[arg.index].role == "symbol")
        for arg, listed in counts
    ):
        raise MemoryLimitError("repeats a list by a number that only a run tells.")


def _check_loops(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse numbers that say how often a kernel, or torch's own Python, goes round."""
    name = operator.name.removeprefix("torch.ops.aten.").partition(".")[0]
    last = name if operator.name.startswith("torch.ops.") else operator.last_name
    numbers = [arg for arg in (*args[1:], *kwargs.values()) if isinstance(arg, int | float)]
    is_loop = last in _LOOPS or "polynomial" in last
    if is_loop and any(not abs(number) <= MAX_ITERATIONS for number in numbers):
        raise TimeLimitError(f"goes round a loop more than {MAX_ITERATIONS} times.")
    if last in _WINDOWS or last.lstrip("_").startswith("adaptive_"):
        sizes = [size for each in (*args, *kwargs.values()) for size in _sizes(each)]
        limit = max([MAX_ITERATIONS, *sizes])
        windows = [*args[1:], *kwargs.values()]
        windows += [item for each in windows if isinstance(each, list | tuple) for item in each]
        if any(isinstance(each, int) and abs(each) > limit for each in windows):
            raise TimeLimitError(f"goes round a window of more than {limit} elements.")


def _sizes(value: Any) -> tuple[Any, ...]:
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def _check_python(last: str, args: Sequence[Any]) -> None:
    # Python asks a tensor for its number where text or a list is the other operand.
    if last not in _COMPARISONS and any(isinstance(arg, str) for arg in args):
        raise MemoryLimitError("computes with text, which no graph needs.")
    is_repeating = last in ("mul", "imul") and any(isinstance(arg, tuple | list) for arg in args)
    if any(isinstance(arg, torch.Tensor) for arg in args) and not is_repeating:
        return
    if last in ("pow", "ipow", "lshift", "ilshift") and len(args) == 2:
        _check_growth(last, *args)
    elif last in ("add", "iadd", "sum"):
        _check_joined(args)
    elif last in ("mul", "imul"):
        lengths = [len(arg) for arg in args if isinstance(arg, tuple | list)]
        counts = [arg for arg in args if not isinstance(arg, tuple | list)]
        if lengths and not all(
            type(count) is int and count * lengths[0] <= MAX_ITEMS for count in counts
        ):
            raise MemoryLimitError(f"repeats a list to more than {MAX_ITEMS} items.")
    elif last == "round" and len(args) == 2 and not _is_int_within(args[1], MAX_DECIMALS):
        raise MemoryLimitError(f"rounds to more than {MAX_DECIMALS} decimals.")


def _check_joined(args: Sequence[Any]) -> None:
    """Refuse lists that are joined to long ones; `sum` joins those in a list."""
    lists = [arg for arg in args if isinstance(arg, tuple | list)]
    inner = [item for each in lists for item in each if isinstance(item, tuple | list)]
    if max(sum(map(len, lists)), sum(map(len, inner))) > MAX_ITEMS:
        raise MemoryLimitError(f"joins lists to more than {MAX_ITEMS} items.")


def _check_growth(last: str, base: Any, exponent: Any) -> None:
    if isinstance(base, float) or isinstance(exponent, float):
        return
    if not _is_int_within(exponent, MAX_BITS):
        raise MemoryLimitError("raises a number to a power that is not between -64 and 64.")
    if isinstance(base, int):
        bits = base.bit_length() + exponent if "shift" in last else base.bit_length() * exponent
        if bits > 2 * MAX_BITS:
            raise MemoryLimitError(f"gives an integer of about {bits} bits, not 64 at most.")


def _is_int_within(number: Any, limit: int) -> bool:
    return isinstance(number, int) and -limit <= number <= limit


def _check_packet(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse `torch.ops.aten.mul([0], 10**10)`, which TorchScript's overload for lists answers."""
    is_packet = operator.name.startswith("torch.ops.") and operator.name.count(".") == 3
    if is_packet and not _holds_tensor([*args, *kwargs.values()]) and _computes_on_lists(operator):
        raise MemoryLimitError("calls an overload for lists or numbers, which no graph needs.")


def _holds_tensor(arg: Any) -> bool:
    if isinstance(arg, tuple | list):
        return any(_holds_tensor(item) for item in arg)
    return isinstance(arg, torch.Tensor)


def _computes_on_lists(operator: Operator) -> bool:
    packet: Any = resolve(operator)
    return any(
        getattr(packet, overload).name() not in dispatched_names()
        for overload in packet.overloads()
    )


def _check_parts(last: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    tensor = args[0] if args else kwargs.get("input", kwargs.get("tensor"))
    if not isinstance(tensor, torch.Tensor):
        return
    if last in ("unbind", "unbind_copy", "tolist"):
        dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
        num_parts = tensor.numel() if last == "tolist" else _size(tensor, dim)
    elif last in _SPLITS_BY_SIZE and len(args) + len(kwargs) > 1:
        size = (
            args[1]
            if len(args) > 1
            else kwargs.get("split_size", kwargs.get("split_size_or_sections"))
        )
        dim = args[2] if len(args) > 2 else kwargs.get("dim", 0)
        num_parts = _size(tensor, dim) // size if isinstance(size, int) and size > 0 else 0
    elif last in _SPLITS_BY_COUNT and len(args) + len(kwargs) > 1:
        count = args[1] if len(args) > 1 else next(iter(kwargs.values()))
        num_parts = count if isinstance(count, int) else 0
    else:
        return
    if isinstance(num_parts, int) and num_parts > MAX_ITEMS:
        raise MemoryLimitError(
            f"takes a tensor apart into {num_parts} items, not {MAX_ITEMS} at most."
        )


def _size(tensor: torch.Tensor, dim: Any) -> int:
    if isinstance(dim, int) and -tensor.dim() <= dim < tensor.dim():
        return tensor.shape[dim]
    return 0
