"""What a compiler generated for one graph, as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class GeneratedKernel:
    """One generated function.

    `language` is `c`, `c++`, `triton` or `tensorir`. `operators` are targets of the sample's
    operators, whose positions are `ops`; where a compiler does not tell them, `ops` is None and
    `operators` are its own names. `launch` holds JSON: what the function is called with.
    """

    entry: str
    language: str
    source: str
    operators: tuple[str, ...]
    ops: tuple[int, ...] | None = None
    launch: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Generation:
    """The kernels of a graph in order, calls into libraries beside them, and what runs it all."""

    kernels: tuple[GeneratedKernel, ...]
    library_calls: tuple[str, ...]
    run: Callable[[], Any]
