"""Limits on calls that cost much without holding a large tensor, checked before the call is made.

`9**9**9**9`, `[0] * 10**10`, `"%1000000000d" % 1`, a tensor of one element expanded and taken apart
into 10**12 tensors, the order of a product of 3,000 matrices. `shapes` limits large tensors.

A limit belongs to an operator: all of its overloads, its in-place form, its copying form and its
second names (`limit_name`) have the same limit.
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
"""Python integers of a graph are sizes and indices, which fit in 64 bits."""

MAX_ITEMS = 100_000
"""Items of one Python list or tuple; the largest sample of upstream has 4,800 operators in all."""

MAX_DECIMALS = 400
"""`round(x, n)` computes 10**n; a float has no more than 324 decimals."""

MAX_ITERATIONS = 10_000
"""Rounds of a loop that an argument counts: powers of matrices, degrees, refinements."""

MAX_CHAIN = 100
"""Operands of one chained product. Its order is found in cubic time, that of an `einsum` in more
than quadratic time."""

MAX_GRID = 64
"""Tensors of one grid, which has as many results, with as many axes each."""

MAX_COPIES = 10**8
"""List items that `sum` copies: it makes a new list for each of its operands."""

_LIMITS = OperatorValues("limit")
"""`loops` and `windows`: an argument counts rounds. `split_size`, `split_count` and `parts`: the
call returns many tensors. `chain` and `grid`: it combines many."""

_GROWING = frozenset({"pow", "ipow", "lshift", "ilshift", "round", "lcm"})
_COMPARISONS = frozenset({"eq", "ne", "is_", "is_not"})
_ITERATING = frozenset({"fsum", "max", "min", "sum"})
"""Functions of Python that take a tensor apart along its first axis."""

_SCALAR_TYPES = frozenset((int, float, bool, type(None), Form, Scalar))
_Check = Callable[[Operator, Sequence[Any], Mapping[str, Any]], None]


@functools.lru_cache(maxsize=16384)
def limit_name(operator: Operator) -> str:
    """Return the name under which an operator is limited, the same for all of its forms.

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
    """Check the operands of a call before it is made.

    Tensors may be real, fake, forms or scalars.

    Raises:
        MemoryLimitError: the call would build a huge integer, text or list.
        TimeLimitError: the call would repeat a loop too often.

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
        MemoryLimitError: it is larger.
    """
    if type(result) is int and result.bit_length() > MAX_BITS:
        raise MemoryLimitError(
            f"The call gives an integer of {result.bit_length()} bits, not 64 at most."
        )
    if isinstance(result, tuple | list):
        if len(result) > MAX_ITEMS:
            raise MemoryLimitError(f"The call gives {len(result)} items, not {MAX_ITEMS} at most.")
        check_items(result)
    elif isinstance(result, Form | torch.Tensor) and len(result.shape) > MAX_RANK:
        raise MemoryLimitError(
            f"The call gives a tensor of {len(result.shape)} axes, not {MAX_RANK} at most."
        )


def check_items(value: Any) -> None:
    """Check how many items nested lists have in all, and how deeply they are nested.

    A list that another one holds several times counts each time: whoever walks through the nested
    lists meets it as often.

    Raises:
        MemoryLimitError: they have more than 100,000 items or 32 levels.
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
                    f"The call has nested lists of more than {MAX_ITEMS} items in all. Skip the "
                    "sample."
                )
            inner += [item for item in values if type(item) in (tuple, list, dict)]
        level = inner
        depth += 1
        if depth > MAX_NESTING + 3:  # a call has a tuple of two around its arguments
            raise MemoryLimitError(f"The call nests lists more than {MAX_NESTING} levels deep.")


def check_repeats(op: Op, args: Sequence[Any], inputs: Sequence[Input]) -> None:
    """Refuse `[0] * n` for an `n` that comes out of the graph: only a run tells how large it is.

    That of a symbol among the inputs is known, and bounded by `check_call`.

    Raises:
        MemoryLimitError: a list or tuple is repeated so.
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
        raise MemoryLimitError("The call repeats a list by a number that only a run tells.")


def join_place(place: str, error: Exception) -> str:
    """Return an error's message behind the operator that it is about.

    >>> join_place("Op 0 (`torch.add`) of `example/sum`", ValueError("The call is too large."))
    'Op 0 (`torch.add`) of `example/sum`: The call is too large.'
    """
    message = str(error)
    return f"{place}: {message}" if message[:1].isupper() else f"{place} {message}"


@functools.lru_cache(maxsize=16384)
def _checks_of(operator: Operator) -> tuple[_Check, ...]:
    """Return the checks of an operator, which most operators lack."""
    if operator.name.startswith(("operator.", "builtins.", "math.")):
        return (_check_python,)
    name = limit_name(operator)
    checks: list[_Check] = []
    limit = _LIMITS.get(name)
    if limit == "loops" or "polynomial" in name:
        checks.append(_check_loops)
    # Kernels of pools visit whole windows, even outside of the input, and adaptive ones their
    # whole result, even if it has no elements.
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
    """Refuse loops that an argument makes long, in kernels and in Python of torch."""
    if any(not abs(number) <= MAX_ITERATIONS for number in _numbers(args, kwargs)):
        raise TimeLimitError(f"The call goes round a loop more than {MAX_ITERATIONS} times.")


def _check_windows(_operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    sizes = [size for arg in (*args, *kwargs.values()) for size in _sizes(arg)]
    limit = max([MAX_ITERATIONS, *sizes])
    if any(isinstance(size, int) and abs(size) > limit for size in _numbers(args, kwargs)):
        raise TimeLimitError(f"The call goes round a window of more than {limit} elements.")


def _numbers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[int | float]:
    """Yield the known numbers among all arguments but the first, those in lists included."""
    for arg in (*args[1:], *kwargs.values()):
        for item in arg if isinstance(arg, list | tuple) else (arg,):
            number = _number(item)
            if number is not None:
                yield number


def _number(value: Any) -> int | float | None:
    """Return a number, or that of a tensor of one known element: torch takes one for the other."""
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
    # Python asks a tensor for its number where text or a list is the other operand.
    if last not in _COMPARISONS and any(isinstance(arg, str) for arg in args):
        raise MemoryLimitError("The call computes with text, which no graph needs.")
    if last in _ITERATING and any(
        _is_tensor(arg) and arg.shape and arg.shape[0] > MAX_ITEMS for arg in args
    ):
        raise MemoryLimitError(f"The call goes through a tensor of more than {MAX_ITEMS} rows.")
    is_repeating = last in ("mul", "imul") and any(isinstance(arg, tuple | list) for arg in args)
    if any(map(_is_tensor, args)) and not is_repeating:
        return
    if last in ("pow", "ipow", "lshift", "ilshift") and len(args) == 2:
        _check_growth(last, *args)
    elif last in ("add", "iadd", "sum"):
        _check_joined(args, is_sum=last == "sum")
    elif last == "lcm" and sum(arg.bit_length() for arg in args if isinstance(arg, int)) > 1024:
        raise MemoryLimitError("The call gives an integer of more than 64 bits.")
    elif last in ("mul", "imul"):
        lengths = [len(arg) for arg in args if isinstance(arg, tuple | list)]
        counts = [arg for arg in args if not isinstance(arg, tuple | list)]
        if lengths and not all(
            type(count) is int and count * lengths[0] <= MAX_ITEMS for count in counts
        ):
            raise MemoryLimitError(f"The call repeats a list to more than {MAX_ITEMS} items.")
    elif last == "round" and len(args) == 2 and not _is_int_within(args[1], MAX_DECIMALS):
        raise MemoryLimitError(f"The call rounds to more than {MAX_DECIMALS} decimals.")


def _check_joined(args: Sequence[Any], *, is_sum: bool) -> None:
    """Refuse lists that are joined to long ones; `sum` joins those in a list."""
    lists = [arg for arg in args if isinstance(arg, tuple | list)]
    inner = [item for items in lists for item in items if isinstance(item, tuple | list)]
    joined = sum(map(len, inner))
    if max(sum(map(len, lists)), joined) > MAX_ITEMS:
        raise MemoryLimitError(f"The call joins lists to more than {MAX_ITEMS} items.")
    if is_sum and len(inner) * joined > MAX_COPIES:
        raise TimeLimitError(f"The call copies more than {MAX_COPIES} items of lists to join them.")


def _check_growth(last: str, base: Any, exponent: Any) -> None:
    if isinstance(base, float) or isinstance(exponent, float):
        return
    if not _is_int_within(exponent, MAX_BITS):
        raise MemoryLimitError(
            "The call raises a number to a power that is not between -64 and 64."
        )
    if isinstance(base, int):
        bits = base.bit_length() + exponent if "shift" in last else base.bit_length() * exponent
        if bits > 2 * MAX_BITS:
            raise MemoryLimitError(
                f"The call gives an integer of about {bits} bits, not 64 at most."
            )


def _is_int_within(number: Any, limit: int) -> bool:
    return isinstance(number, int) and -limit <= number <= limit


def _check_packet(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse `torch.ops.aten.mul([0], 10**10)`, which TorchScript's overload for lists answers."""
    check_items((args, kwargs))
    if not _holds_tensor([*args, *kwargs.values()]) and _computes_on_lists(operator):
        raise MemoryLimitError(
            "The call calls an overload for lists or numbers, which no graph needs."
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
    """Refuse to take a tensor apart into more than 100,000 parts."""
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
            f"The call takes a tensor apart into {num_parts} items, not {MAX_ITEMS} at most."
        )


def _size(tensor: Any, dim: Any) -> int:
    """Return the size of an axis, or of the largest one where the axis is not known."""
    dim = _number(dim)
    rank = len(tensor.shape)
    if isinstance(dim, int):
        return tensor.shape[dim] if -rank <= dim < rank else 0
    return max((size for size in tensor.shape if isinstance(size, int)), default=0)


def _check_operand_count(
    operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Refuse products and grids of very many tensors."""
    name = limit_name(operator)
    limit = MAX_GRID if _LIMITS[name] == "grid" else MAX_CHAIN
    counts = [len(arg) for arg in (*args, *kwargs.values()) if isinstance(arg, tuple | list)]
    counts.append(sum(map(_is_tensor, args)))
    if name == "combinations":
        counts += [number for number in _numbers(args, kwargs) if isinstance(number, int)]
    if max(counts) > limit:
        raise TimeLimitError(f"The call combines {max(counts)} operands, not {limit} at most.")
