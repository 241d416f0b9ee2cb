"""Conversion of a sample's arguments to `torch.fx` arguments, which fx prints as Python code.

Only safe values are passed to fx: nodes, None, bools, 64-bit integers, floats (fx prints `inf` and
`nan`), finite complex numbers, printable strings and torch's own constants. Each of them prints as
a literal of itself.
"""

from __future__ import annotations

import cmath
import re
from collections.abc import Callable
from typing import Any

import torch

from ....errors import MaterializeError
from ....sample.arguments import Arg, DictArg, ListArg, Named, Ref, SliceArg
from ..tensors import dtype_of
from ..text.constants import CONSTANTS

_DEVICE_TEXT = re.compile(r"(cpu|cuda|hpu|ipu|maia|meta|mps|mtia|npu|xla|xpu)(:\d{1,4})?\Z")

_PLAIN = frozenset((int, float, bool, type(None), type(Ellipsis)))
"""Argument types that are passed on unchanged."""

_CONSTANTS: dict[Named, Any] = {
    named: getattr(torch, text.removeprefix("torch."))
    for text, named in CONSTANTS.items()
    if named.kind != "dtype" and hasattr(torch, text.removeprefix("torch."))
}


def to_fx(
    arg: Arg, value_of: Callable[[int], Any], device: torch.device, *, is_device: bool = False
) -> Any:
    """Convert `arg`, with `value_of(index)` for each reference and torch's constants for names.

    Every device becomes `device`. With `is_device`, a string may name a device too.

    Raises:
        MaterializeError: If torch has no such argument, or it cannot be printed safely.

    >>> to_fx(ListArg((1, Named("device", "cuda:0"))), lambda index: None, torch.device("cpu"))
    [1, device(type='cpu')]
    """
    if type(arg) is Ref:
        return value_of(arg.index)
    if type(arg) in _PLAIN:
        return arg
    if isinstance(arg, tuple):
        return tuple([to_fx(item, value_of, device) for item in arg])
    if isinstance(arg, str):
        return device if is_device and _DEVICE_TEXT.match(arg) else _checked_text(arg)
    if isinstance(arg, Named):
        return _constant(arg, device)
    if isinstance(arg, complex):
        if not cmath.isfinite(arg):
            raise MaterializeError(f"Expected finite complex numbers, got {arg}.")
        return arg
    if isinstance(arg, ListArg):
        return [to_fx(item, value_of, device) for item in arg.items]
    if isinstance(arg, DictArg):
        return {_checked_text(key): to_fx(item, value_of, device) for key, item in arg.items}
    if isinstance(arg, SliceArg):
        parts = (to_fx(part, value_of, device) for part in (arg.start, arg.stop, arg.step))
        return slice(*parts)
    raise MaterializeError(f"An argument of type `{type(arg).__name__}` cannot be passed to torch.")


def autocast_arguments(args: tuple[Any, ...], device: torch.device) -> tuple[Any, ...]:
    """Return the arguments of an autocast region moved to `device`.

    Without an explicit dtype, the region uses the default dtype of the device it was captured on.

    Raises:
        MaterializeError: If the region names no device type.

    >>> autocast_arguments(("cuda", None, True, None), torch.device("cpu"))
    ('cpu', torch.float16, True, None)
    """
    captured_on = args[0] if args else None
    if not isinstance(captured_on, str):
        raise MaterializeError("Expected the first argument of the region to be a device type.")
    dtype = args[1] if len(args) > 1 else None
    if dtype is None:
        dtype = torch.bfloat16 if captured_on == "cpu" else torch.float16
    return (device.type, dtype, *args[2:])


def _checked_text(text: str) -> str:
    if type(text) is not str or not text.isprintable():
        raise MaterializeError(f"Expected strings of printable characters, got {text[:40]!r}.")
    return text


def _constant(named: Named, device: torch.device) -> Any:
    if named.kind == "device":
        return device
    if named.kind == "dtype":
        return dtype_of(named.name)
    if named not in _CONSTANTS:
        raise MaterializeError(
            f"The {named.kind} `{named.name}` does not exist in torch {torch.__version__}."
        )
    return _CONSTANTS[named]
