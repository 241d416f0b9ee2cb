"""Generated kernels as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class GeneratedKernel:
    """A generated function.

    `language` is `c`, `c++`, `triton` or `tensorir`. `operators` are the targets of the sample's
    operators at the positions `ops`. If the compiler does not report operators, `ops` is unset and
    `operators` are the compiler's own names. `launch` is JSON that describes the arguments.
    """

    entry: str
    language: str
    source: str
    operators: tuple[str, ...]
    ops: tuple[int, ...] | None = None
    launch: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Generation:
    """Kernels of a graph in order, calls into libraries, and a function that runs the graph."""

    kernels: tuple[GeneratedKernel, ...]
    library_calls: tuple[str, ...]
    run: Callable[[], Any]
