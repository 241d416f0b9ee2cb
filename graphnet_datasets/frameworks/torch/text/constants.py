"""Conversion between named torch constants and source text: dtypes, layouts and devices."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ....sample.arguments import Named
from ....sample.vocabulary import ITEM_SIZE_BYTES

_DTYPE_ALIASES = {
    "half": "float16", "float": "float32", "double": "float64", "cfloat": "complex64",
    "cdouble": "complex128", "chalf": "complex32", "short": "int16", "int": "int32",
    "long": "int64",
}  # fmt: skip
_LAYOUTS = (
    "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged",
)  # fmt: skip
_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")

CONSTANTS: Mapping[str, Named] = {
    **{f"torch.{name}": Named("dtype", name) for name in ITEM_SIZE_BYTES},
    **{f"torch.{alias}": Named("dtype", name) for alias, name in _DTYPE_ALIASES.items()},
    **{f"torch.{name}": Named("layout", name) for name in _LAYOUTS},
    **{f"torch.{name}": Named("memory_format", name) for name in _MEMORY_FORMATS},
}
"""Constants by their attribute of `torch`."""

_DEVICE = re.compile(r"[a-z_]{1,20}(:\d{1,4})?\Z")


def is_device_name(text: str) -> bool:
    """Return whether `text` is a device type with an optional index.

    >>> is_device_name("cuda:0"), is_device_name("cuda:0; import os")
    (True, False)
    """
    return bool(_DEVICE.match(text))


def print_constant(named: Named) -> str:
    """Return the source expression of a named constant.

    >>> print_constant(Named("dtype", "bfloat16")), print_constant(Named("device", "cuda:0"))
    ('torch.bfloat16', 'torch.device("cuda:0")')
    """
    if named.kind == "device":
        return f'torch.device("{named.name}")'
    return f"torch.{named.name}"
