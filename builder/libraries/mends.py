"""Replacements of library code that tracers cannot follow, in plain Python.

Replacements last as long as the process, which is a worker for models of one library.
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
        # It uses `opt_einsum`, whose thread-local caches cannot be traced.
        optional("tensorly.plugins").use_default_einsum()
    if package == "monai.networks.nets":
        _mend_monai(submodule(package, "swin_unetr"))


def _mend_monai(swin_unetr: Any) -> None:
    """Make Swin UNETR compute its sizes without NumPy, and the U-Nets compare types directly."""
    swin_unetr.np = types.SimpleNamespace(ceil=math.ceil)
    swin_unetr.SwinUNETR._check_input_size = lambda *_: None
    torch.jit.isinstance = isinstance
