"""Lowering of a schedule by TVM's passes, and its compilation by LLVM."""

from __future__ import annotations

import importlib
from typing import Any


def lowered(module: Any) -> Any:
    """Return the `IRModule` of a schedule after TVM's passes before vectorization and unrolling.

    Blocks and loops with a single iteration are removed, and buffers are compacted and flattened to
    one index. Vectorized and unrolled loops remain annotated loops, which keeps programs small.
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


def build(module: Any, target: Any) -> Any:
    """Return a module compiled to a library in memory by LLVM."""
    tvm = importlib.import_module("tvm")
    transform = importlib.import_module("tvm.s_tir.transform")
    module = transform.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
    return tvm.build(module, target=target)
