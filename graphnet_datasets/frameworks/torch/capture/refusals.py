"""Checks that reject arguments that cannot be traced."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from ....errors import CaptureError
from .replay import walk

_SPECIALISED = re.compile(
    r"You marked (?P<size>.+?) as dynamic but your code specialized it to be a constant "
    r"\((?P<constant>[^)]*)\)"
)
_SIZE = re.compile(r"L\['(?P<name>\w+)'\](?P<path>.*?)\.size\(\)\[(?P<dimension>\d+)\]\Z")


def refuse_arguments(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise `CaptureError` if a call takes a nested tensor of any layout, or an iterator."""
    for path, value in (*walk(list(args), "args"), *walk(dict(kwargs), "kwargs")):
        if isinstance(value, torch.Tensor) and value.is_nested:
            layout = str(value.layout).removeprefix("torch.")
            raise CaptureError(
                f"`{name}` takes a nested tensor (`{path}`, layout {layout}); samples support "
                "only dense tensors. Pass a padded tensor (`x.to_padded_tensor(0.0)`) and a "
                "mask of its valid elements."
            )
        if _is_iterator(path, value):
            raise CaptureError(
                f"`{name}` takes a `{type(value).__name__}` (`{path}`), which can be read only "
                "once, while a capture calls the module twice. Pass a list."
            )


def refuse_outputs(name: str, outputs: Any) -> None:
    """Raise `CaptureError` if outputs contain an iterator or a set of tensors.

    Their elements cannot be compared.
    """
    for path, value in walk(outputs, "outputs"):
        is_set = isinstance(value, set | frozenset)
        if _is_iterator(path, value) or (is_set and any(map(torch.is_tensor, value))):
            raise CaptureError(
                f"`{name}` returns a `{type(value).__name__}` (`{path}`), whose elements cannot be "
                "compared with those of the captured graphs. Return a list."
            )


def _is_iterator(path: str, value: Any) -> bool:
    """Return whether a value in a container is an iterator of Python, which has one pass.

    Attributes of objects, such as counters, are ignored.
    """
    is_attribute = "." in re.sub(r"\[[^]]*\]", "", path)
    return isinstance(value, Iterator) and not hasattr(value, "__dict__") and not is_attribute


def refuse_constant_size(name: str, argument: str, example: Any, traced: Any) -> None:
    """Raise `CaptureError` if a size marked by `mark_dynamic` is constant in the trace."""
    if not isinstance(example, torch.Tensor) or not isinstance(traced, torch.Tensor):
        return
    for dimension in sorted(getattr(example, "_dynamo_dynamic_indices", ())):
        size = traced.shape[dimension]
        if isinstance(size, int):
            raise CaptureError(
                f"`{name}` cannot be traced: dimension {dimension} of `{argument}` is marked as "
                f"dynamic, but torch traces it as the constant {size}. Sizes 0 and 1 are always "
                "constants: pass a larger one. Otherwise use `torch._dynamo.maybe_mark_dynamic`, "
                "or remove the mark."
            )


def explain_specialised(message: str) -> str:
    """Explain in whole sentences which dynamic sizes torch found to be constant.

    The result is empty if `message`, a torch error, is about something else.

    >>> explain_specialised("- You marked L['x'].size()[0] as dynamic but your code specialized it "
    ...                     "to be a constant (4). If you're using mark_dynamic, ...")[:75]
    'dimension 0 of `x` is marked as dynamic, but the module works with the size'
    """
    specialised_sizes = dict.fromkeys(
        (_described(match["size"]), match["constant"]) for match in _SPECIALISED.finditer(message)
    )
    if not specialised_sizes:
        return ""
    sizes = " and ".join(
        f"{size} is marked as dynamic, but the module works with the size {constant} only"
        for size, constant in specialised_sizes
    )
    return (
        f"{sizes}. Remove the mark, use `torch._dynamo.maybe_mark_dynamic` (of `extract_export`: "
        "`torch.export.Dim.AUTO`), or change the module so that it takes other sizes."
    )


def _described(size: str) -> str:
    match = _SIZE.match(size)
    if match is None:
        return f"the size `{size}`"
    return f"dimension {match['dimension']} of `{match['name']}{match['path']}`"
