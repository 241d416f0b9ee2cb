"""Replacements of library code that tracers cannot follow, in plain Python.

It holds for the process, which is a worker that captures models of one library.
"""

from __future__ import annotations

import functools
import math
import types
from typing import Any

import torch

from .imports import Optional, optional, submodule


@functools.cache
def mend(package: Optional) -> None:
    """Replace a package's functions that prevent captures; most packages need no replacement."""
    if package == "neuralop.models":
        # It has chosen `opt_einsum`, whose caches by thread are not traced.
        optional("tensorly.plugins").use_default_einsum()
    if package == "monai.networks.nets":
        _mend_monai(submodule(package, "swin_unetr"))


def _mend_monai(swin_unetr: Any) -> None:
    """Have Swin UNETR compute its sizes without NumPy, and the U-Nets ask for types as they are."""
    swin_unetr.np = types.SimpleNamespace(ceil=math.ceil)
    swin_unetr.SwinUNETR._check_input_size = lambda *_: None
    torch.jit.isinstance = isinstance
