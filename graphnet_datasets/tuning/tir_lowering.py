"""A schedule as the program that TVM compiles of it, short of what it does to vectors and loops."""

from __future__ import annotations

import importlib
from typing import Any


def lowered(module: Any) -> Any:
    """Return the `IRModule` of a schedule with TVM's own passes behind it.

    Blocks are gone, with them loops of one iteration; a buffer has the size of what is in use at a
    time, and one index. Vectorized loops are loops still, and none is unrolled yet: programs stay
    small, and their marks tell what will be done to them.
    """
    passes = importlib.import_module("tvm.s_tir.transform")
    general = importlib.import_module("tvm.tirx.transform")
    sequence = importlib.import_module("tvm.ir.transform").Sequential(
        [
            passes.LowerInitBlock(),
            passes.PlanAndUpdateBufferAllocationLocation(),
            passes.ConvertBlocksToOpaque(),
            passes.CompactBufferAllocation(),
            passes.LowerMatchBuffer(),
            general.StmtSimplify(),
            passes.LowerOpaqueBlock(),
            general.FlattenBuffer(),
            general.StmtSimplify(),
        ]
    )
    return sequence(module)
