"""Small torch samples made by hand."""

from __future__ import annotations

from typing import Any

from graphnet_datasets.sample import Input, Op, Sample, Statistics, Symbol, Value
from graphnet_datasets.sample.arguments import Arg, Ref

MATRIX = Input("input", Value("float32", (2, 3)), statistics=Statistics(0.0, 1.0))


def build(
    *ops: Op | tuple[Any, ...],
    inputs: tuple[Input, ...] = (MATRIX,),
    outputs: Arg = "last",
    symbols: tuple[Symbol, ...] = (),
) -> Sample:
    """Return a sample of operators given as `Op` or (target, *args), whose output is the last."""
    made = tuple(op if isinstance(op, Op) else Op(op[0], tuple(op[1:])) for op in ops)
    last = Ref(len(inputs) + len(made) - 1)
    return Sample(
        id="example/by_hand",
        framework="torch",
        task="other",
        inputs=inputs,
        ops=made,
        outputs=last if outputs == "last" else outputs,
        symbols=symbols,
    )
