"""Options that affect the plan of a nest."""

from __future__ import annotations

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True, slots=True)
class Choices:
    """Values fixed by the user or the tuner; None leaves the choice to the model. See `Options`."""

    threads: int
    micro: tuple[int, int] | None = None
    k_block: int = 512
    vector_index: int | None = None
    pack: Literal["auto", "always", "never"] = "auto"
    prefetch: int | None = None
    parallel_depth: int | None = None
    unroll: int = 1
    tile: tuple[int, ...] | None = None
    is_scalar: bool = False
