"""The part of the options that a nest's plan depends on."""

from __future__ import annotations

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True, slots=True)
class Choices:
    """What is fixed by the user or the tuner; None leaves it to the model.

    Attributes:
        micro: at most so many rows, and vectors, of a register tile.
        vector_index: the place of the output index whose values lanes hold.
        k_block: how many terms of a sum lie between two stores of a packed product.
        parallel_depth: how many of the outermost loops are shared out over threads.
    """

    threads: int
    micro: tuple[int, int] | None = None
    k_block: int = 512
    vector_index: int | None = None
    pack: Literal["auto", "always", "never"] = "auto"
    prefetch: int | None = None
    parallel_depth: int | None = None
    unroll: int = 1
