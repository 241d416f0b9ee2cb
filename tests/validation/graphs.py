"""Samples that are valid, and samples each of which fails one check."""

from __future__ import annotations

import dataclasses
from typing import Any

from graphnet_datasets.arguments import ListArg, Ref
from graphnet_datasets.sample import CustomOperator, Input, Op, Sample, Value, hash_source

X = Input("input", Value("float32", (4, 4)))


def graph(
    *ops: Op,
    name: str = "graph",
    outputs: Any = None,
    framework: Any = "torch",
    custom_operators: tuple[CustomOperator, ...] = (),
) -> Sample:
    outputs = (Ref(len(ops)),) if outputs is None else outputs
    return Sample(
        f"test/{name}", framework, "other", (X,), ops, outputs, custom_operators=custom_operators
    )


def call(target: str, *args: Any) -> Op:
    return Op(target, args or (Ref(0),))


VALID = graph(
    call("torch.relu"), call("torch.matmul", Ref(1), Ref(0)), call("operator.add", Ref(2), 1)
)

BREAKS = graph(
    call("torch.relu"),
    call("torch.Tensor.tolist", Ref(1)),
    call("torch.exp", Ref(1)),
    name="breaks",
    outputs=(Ref(3),),
)
"""Runs, and is one graph as it stands; a tracer breaks at `tolist`."""

DIVIDES = graph(call("torch.sub", Ref(0), Ref(0)), call("torch.div", Ref(1), Ref(1)), name="nan")
MASKS = graph(
    call("torch.gt", Ref(0), 0.0),
    call("torch.Tensor.masked_fill", Ref(0), Ref(1), float("-inf")),
    name="masks",
)
"""Writes infinities itself."""

CUSTOM = graph(call("torch.ops.mylib.fused_gelu.default"), name="custom")
_SOURCE = "def double(x):\n    return x + x\n\n\ndef double_fake(x):\n    return x.clone()\n"
WITH_SOURCE = graph(
    call("torch.relu"),
    Op("torch.ops.graphnet_tests.double.default", (Ref(1),), results=(X.value,)),
    call("torch.exp", Ref(2)),
    name="with-source",
    custom_operators=(
        CustomOperator(
            "graphnet_tests::double", "(Tensor x) -> Tensor", _SOURCE, hash_source(_SOURCE)
        ),
    ),
)
"""Calls an operator whose source comes with it."""

CHANGED_SOURCE = dataclasses.replace(
    WITH_SOURCE,
    custom_operators=(dataclasses.replace(WITH_SOURCE.custom_operators[0], source="x = 1"),),
)

NONZERO = graph(call("torch.relu"), call("torch.nonzero", Ref(1)), name="nonzero")
WRONG_SHAPES = graph(call("torch.reshape", Ref(0), ListArg((7, 7))), name="shapes")
CHUNKS = graph(call("torch.chunk", Ref(0), 2), call("operator.getitem", Ref(1), 0), name="chunks")
"""Two operators between which a tuple crosses."""

UNNAMED_PLACE = graph(call("paddle._C_ops.relu"), name="paddle", framework="paddle")
