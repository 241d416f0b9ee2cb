"""Limits on calls that are expensive without creating a large tensor, checked before the call.

Examples are `9**9**9**9`, `[0] * 10**10`, `"%1000000000d" % 1`, splitting an expanded one-element
tensor into 10**12 parts, and ordering a product of 3,000 matrices. `shapes` limits large tensors.

A limit applies to every form of an operator: its overloads, in-place form, copying form and aliases
share one `limit_name`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from ....errors import MemoryLimitError, TimeLimitError
from ....operators import OperatorValues
from ....sample import Input, Op
from ....sample.arguments import MAX_NESTING, Ref
from ....sample.invariants import MAX_RANK
from ..operators import Operator, dispatched_names, resolve
from .forms import Form, Scalar

MAX_BITS = 64
"""Python integers in a graph are sizes and indices, which fit in 64 bits."""

MAX_ITEMS = 100_000
"""Items of a Python list or tuple; the largest upstream sample has 4,800 operators in total."""

MAX_DECIMALS = 400
"""`round(x, n)` computes 10**n; a float has at most 324 decimals."""

MAX_ITERATIONS = 10_000
"""Iterations of a loop whose count is an argument, such as a matrix power or polynomial degree."""

MAX_CHAIN = 100
"""Operands of a chained product. Finding the multiplication order takes cubic time; for `einsum`
it takes more than quadratic time."""

MAX_GRID = 64
"""Tensors of one grid, which has as many results as inputs, each with as many axes."""

MAX_COPIES = 10**8
"""List items that `sum` may copy; it creates a new list for each operand."""

_LIMITS = OperatorValues("limit")
"""Limit kinds. `loops` and `windows`: an argument is an iteration count. `split_size`,
`split_count` and `parts`: the call returns many tensors. `chain` and `grid`: it combines many."""

_GROWING = frozenset({"pow", "ipow", "lshift", "ilshift", "round", "lcm"})
_COMPARISONS = frozenset({"eq", "ne", "is_", "is_not"})
_ITERATING = frozenset({"fsum", "max", "min", "sum"})
"""Python functions that iterate over the first axis of a tensor."""

_SCALAR_TYPES = frozenset((int, float, bool, type(None), Form, Scalar))
_Check = Callable[[Operator, Sequence[Any], Mapping[str, Any]], None]


@functools.lru_cache(maxsize=16384)
def limit_name(operator: Operator) -> str:
    """Return the name whose limit applies to an operator, the same for all of its forms.

    >>> from ..operators import lookup
    >>> names = ("torch.ops.aten.split_copy.Tensor", "torch.Tensor.split", "torch.unsafe_split")
    >>> {limit_name(lookup(name)) for name in names}
    {'split'}
    >>> limit_name(lookup("torch.ops.aten.linalg_matrix_power")), limit_name(lookup("torch.add"))
    ('matrix_power', 'add')
    """
    name = operator.packet_name.strip("_")
    for prefix in ("linalg_", "special_", "unsafe_"):
        name = name.removeprefix(prefix)
    return name.removesuffix("_copy")


def check_call(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check the operands of a call before the call runs.

    Tensor operands may be real tensors, fake tensors, `Form`s or `Scalar`s.

    Raises:
        MemoryLimitError: If the call would build a huge integer, string or list.
        TimeLimitError: If the call would loop too often.

    >>> from ..operators import lookup
    >>> check_call(lookup("operator.pow"), (2, 10), {})
    """
    for check in _checks_of(operator):
        check(operator, args, kwargs)
    for arg in (*args, *kwargs.values()) if kwargs else args:
        if type(arg) is tuple or type(arg) is list:
            check_items((args, kwargs))
            break


def check_result(result: Any) -> None:
    """Check that a result has integers of at most 64 bits, 100,000 items and 64 axes.

    Raises:
        MemoryLimitError: If it exceeds a limit.
    """
    if type(result) is int and result.bit_length() > MAX_BITS:
        raise MemoryLimitError(
            f"The result is an integer of {result.bit_length()} bits; at most 64 are supported. "
            "Skip the sample."
        )
    if isinstance(result, tuple | list):
        if len(result) > MAX_ITEMS:
            raise MemoryLimitError(
                f"The result has {len(result)} items; at most {MAX_ITEMS} are supported. Skip the "
                "sample."
            )
        check_items(result)
    elif isinstance(result, Form | torch.Tensor) and len(result.shape) > MAX_RANK:
        raise MemoryLimitError(
            f"The result has {len(result.shape)} axes; at most {MAX_RANK} are supported. Skip the "
            "sample."
        )


def check_items(value: Any) -> None:
    """Check the total number of items and the depth of nested lists.

    A list that occurs several times is counted each time, because every traversal visits it each
    time.

    Raises:
        MemoryLimitError: If there are more than 100,000 items or 32 levels.
    """
    count = 0
    level, depth = [value], 0
    while level:
        inner: list[Any] = []
        for items in level:
            values = items.values() if type(items) is dict else items
            count += len(values)
            if count > MAX_ITEMS:
                raise MemoryLimitError(
                    f"The nested lists of the call have more than {MAX_ITEMS} items in total. Skip "
                    "the sample."
                )
            inner += [item for item in values if type(item) in (tuple, list, dict)]
        level = inner
        depth += 1
        if depth > MAX_NESTING + 3:  # arguments are wrapped in a tuple of args and kwargs
            raise MemoryLimitError(
                f"The lists of the call are nested more than {MAX_NESTING} levels deep. Skip the "
                "sample."
            )


def check_repeats(op: Op, args: Sequence[Any], inputs: Sequence[Input]) -> None:
    """Reject `[0] * n` if `n` is computed by the graph and thus known only at run time.

    An input symbol has a known value, which `check_call` bounds.

    Raises:
        MemoryLimitError: If a list or tuple is repeated by such a number.
    """
    if op.target not in ("operator.mul", "operator.imul", "_operator.mul", "_operator.imul"):
        return
    is_list = [isinstance(arg, tuple | list) for arg in args]
    counts = zip(op.args, is_list, strict=False)
    if any(is_list) and any(
        isinstance(arg, Ref)
        and not listed
        and not (arg.index < len(inputs) and inputs[arg.index].role == "symbol")
        for arg, listed in counts
    ):
        raise MemoryLimitError(
            "The call repeats a list by a number that is known only at run time. Skip the sample."
        )


def join_place(place: str, error: Exception) -> str:
    """Return an error message prefixed with the operator it is about.

    >>> join_place("Op 0 (`torch.add`) of `example/sum`", ValueError("The call is too large."))
    'Op 0 (`torch.add`) of `example/sum`: The call is too large.'
    """
    message = str(error)
    return f"{place}: {message}" if message[:1].isupper() else f"{place} {message}"


@functools.lru_cache(maxsize=16384)
def _checks_of(operator: Operator) -> tuple[_Check, ...]:
    """Return the checks of an operator, often an empty tuple."""
    if operator.name.startswith(("operator.", "builtins.", "math.")):
        return (_check_python,)
    name = limit_name(operator)
    checks: list[_Check] = []
    limit = _LIMITS.get(name)
    if limit == "loops" or "polynomial" in name:
        checks.append(_check_loops)
    # Pooling kernels visit whole windows, even outside the input. Adaptive pooling visits its
    # whole result, even if the result is empty.
    if limit == "windows" or "adaptive_" in name:
        checks.append(_check_windows)
    if operator.name.startswith("torch.ops.") and operator.name.count(".") == 3:
        checks.append(_check_packet)
    if limit in ("split_size", "split_count", "parts"):
        checks.append(_check_parts)
    if limit in ("chain", "grid"):
        checks.append(_check_operand_count)
    return tuple(checks)


def _check_loops(_operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Reject arguments that make a loop too long, in a kernel or in torch's Python code."""
    if any(not abs(number) <= MAX_ITERATIONS for number in _numbers(args, kwargs)):
        raise TimeLimitError(f"The call loops more than {MAX_ITERATIONS} times. Skip the sample.")


def _check_windows(_operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    sizes = [size for arg in (*args, *kwargs.values()) for size in _sizes(arg)]
    limit = max([MAX_ITERATIONS, *sizes])
    if any(isinstance(size, int) and abs(size) > limit for size in _numbers(args, kwargs)):
        raise TimeLimitError(
            f"The call visits windows of more than {limit} elements. Skip the sample."
        )


def _numbers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[int | float]:
    """Yield the known numbers in all arguments but the first, including those in lists."""
    for arg in (*args[1:], *kwargs.values()):
        for item in arg if isinstance(arg, list | tuple) else (arg,):
            number = _number(item)
            if number is not None:
                yield number


def _number(value: Any) -> int | float | None:
    """Return a number, or the known element of a one-element tensor, which torch accepts as one."""
    if isinstance(value, int | float):
        return value
    if isinstance(value, Scalar):
        value = value.number
    elif isinstance(value, torch.Tensor):
        real = getattr(value, "constant", None) if hasattr(value, "fake_mode") else value
        if real is None or real.is_meta or real.numel() != 1:
            return None
        with torch._C._DisableTorchDispatch():
            value = real.detach().item()
    return value if isinstance(value, int | float) else None


def _sizes(value: Any) -> tuple[Any, ...]:
    return tuple(value.shape) if _is_tensor(value) else ()


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor | Form | Scalar)


def _check_python(operator: Operator, args: Sequence[Any], _kwargs: Mapping[str, Any]) -> None:
    last = operator.last_name
    is_limited = last in _ITERATING or last in _GROWING
    if not is_limited and _SCALAR_TYPES.issuperset(map(type, args)):
        return
    # Python converts a tensor to a number if the other operand is a string or a list.
    if last not in _COMPARISONS and any(isinstance(arg, str) for arg in args):
        raise MemoryLimitError("The call computes with strings. Skip the sample.")
    if last in _ITERATING and any(
        _is_tensor(arg) and arg.shape and arg.shape[0] > MAX_ITEMS for arg in args
    ):
        raise MemoryLimitError(
            f"The call iterates over a tensor of more than {MAX_ITEMS} rows. Skip the sample."
        )
    is_repeating = last in ("mul", "imul") and any(isinstance(arg, tuple | list) for arg in args)
    if any(map(_is_tensor, args)) and not is_repeating:
        return
    if last in ("pow", "ipow", "lshift", "ilshift") and len(args) == 2:
        _check_growth(last, *args)
    elif last in ("add", "iadd", "sum"):
        _check_joined(args, is_sum=last == "sum")
    elif last == "lcm" and sum(arg.bit_length() for arg in args if isinstance(arg, int)) > 1024:
        raise MemoryLimitError(
            "The result may be an integer of more than 64 bits. Skip the sample."
        )
    elif last in ("mul", "imul"):
        lengths = [len(arg) for arg in args if isinstance(arg, tuple | list)]
        counts = [arg for arg in args if not isinstance(arg, tuple | list)]
        if lengths and not all(
            type(count) is int and count * lengths[0] <= MAX_ITEMS for count in counts
        ):
            raise MemoryLimitError(
                f"The call repeats a list to more than {MAX_ITEMS} items. Skip the sample."
            )
    elif last == "round" and len(args) == 2 and not _is_int_within(args[1], MAX_DECIMALS):
        raise MemoryLimitError(
            f"The call rounds to more than {MAX_DECIMALS} decimals. Skip the sample."
        )


def _check_joined(args: Sequence[Any], *, is_sum: bool) -> None:
    """Reject concatenations that produce long lists; `sum` concatenates the lists inside a list."""
    lists = [arg for arg in args if isinstance(arg, tuple | list)]
    inner = [item for items in lists for item in items if isinstance(item, tuple | list)]
    joined = sum(map(len, inner))
    if max(sum(map(len, lists)), joined) > MAX_ITEMS:
        raise MemoryLimitError(
            f"The call concatenates lists to more than {MAX_ITEMS} items. Skip the sample."
        )
    if is_sum and len(inner) * joined > MAX_COPIES:
        raise TimeLimitError(
            f"The call copies more than {MAX_COPIES} list items to concatenate lists. Skip the "
            "sample."
        )


def _check_growth(last: str, base: Any, exponent: Any) -> None:
    if isinstance(base, float) or isinstance(exponent, float):
        return
    if not _is_int_within(exponent, MAX_BITS):
        raise MemoryLimitError(
            f"Expected an exponent in [-{MAX_BITS}, {MAX_BITS}], got {exponent}. Skip the sample."
        )
    if isinstance(base, int):
        bits = base.bit_length() + exponent if "shift" in last else base.bit_length() * exponent
        if bits > 2 * MAX_BITS:
            raise MemoryLimitError(
                f"The result is an integer of about {bits} bits; at most {MAX_BITS} are supported. "
                "Skip the sample."
            )


def _is_int_within(number: Any, limit: int) -> bool:
    return isinstance(number, int) and -limit <= number <= limit


def _check_packet(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Reject calls such as `torch.ops.aten.mul([0], 10**10)`, which use TorchScript overloads."""
    check_items((args, kwargs))
    if not _holds_tensor([*args, *kwargs.values()]) and _computes_on_lists(operator):
        raise MemoryLimitError(
            "The call selects an overload for lists or numbers. Skip the sample."
        )


def _holds_tensor(arg: Any) -> bool:
    if isinstance(arg, tuple | list):
        return any(_holds_tensor(item) for item in arg)
    return _is_tensor(arg)


@functools.lru_cache(maxsize=4096)
def _computes_on_lists(operator: Operator) -> bool:
    packet: Any = resolve(operator)
    return any(
        getattr(packet, overload).name() not in dispatched_names()
        for overload in packet.overloads()
    )


def _check_parts(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Reject splitting a tensor into more than 100,000 parts."""
    tensor = args[0] if args else kwargs.get("self", kwargs.get("input", kwargs.get("tensor")))
    name, last_args = limit_name(operator), [*args[1:], *kwargs.values()]
    if not _is_tensor(tensor):
        return
    num_parts = 0
    if name == "tolist":
        num_parts = tensor.numel()
    elif name == "unbind":
        num_parts = _size(tensor, args[1] if len(args) > 1 else kwargs.get("dim", 0))
    elif _LIMITS[name] == "split_count":
        counts = [_number(arg) for arg in last_args]
        num_parts = max((count for count in counts if isinstance(count, int)), default=0)
    elif last_args:
        sizes = [kwargs[key] for key in ("split_size", "split_size_or_sections") if key in kwargs]
        size = _number(args[1] if len(args) > 1 else next(iter(sizes), None))
        dim = args[2] if len(args) > 2 else kwargs.get("dim", 0)
        if isinstance(size, int) and size > 0:
            num_parts = -(-_size(tensor, dim) // size)
    if isinstance(num_parts, int) and num_parts > MAX_ITEMS:
        raise MemoryLimitError(
            f"The call splits a tensor into {num_parts} parts; at most {MAX_ITEMS} are supported. "
            "Skip the sample."
        )


def _size(tensor: Any, dim: Any) -> int:
    """Return the size of an axis, or the largest size if the axis is unknown."""
    dim = _number(dim)
    rank = len(tensor.shape)
    if isinstance(dim, int):
        return tensor.shape[dim] if -rank <= dim < rank else 0
    return max((size for size in tensor.shape if isinstance(size, int)), default=0)


def _check_operand_count(
    operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Reject products and grids of very many tensors."""
    name = limit_name(operator)
    limit = MAX_GRID if _LIMITS[name] == "grid" else MAX_CHAIN
    counts = [len(arg) for arg in (*args, *kwargs.values()) if isinstance(arg, tuple | list)]
    counts.append(sum(map(_is_tensor, args)))
    if name == "combinations":
        counts += [number for number in _numbers(args, kwargs) if isinstance(number, int)]
    if max(counts) > limit:
        raise TimeLimitError(
            f"The call combines {max(counts)} operands; at most {limit} are supported. Skip the "
            "sample."
        )
