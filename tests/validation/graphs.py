"""Samples that are valid, and samples each of which fails one check."""

from __future__ import annotations

import dataclasses
from typing import Any

from graphnet_datasets.sample import (
    CustomOperator,
    Input,
    Op,
    Sample,
    Value,
    hash_source,
)
from graphnet_datasets.sample.arguments import ListArg, Named, Ref

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


def paddle_graph(*ops: Op, name: str, dtype: str = "float32") -> Sample:
    inputs = (Input("input", Value(dtype, (4, 4))),)
    return Sample(f"paddle/{name}", "paddle", "other", inputs, ops, (Ref(len(ops)),))


PADDLE_MIXED = paddle_graph(
    call("paddle._C_ops.split_with_num", Ref(0), 2, 1),
    call("operator.getitem", Ref(1), 1),
    call("paddle._C_ops.tanh_", Ref(2)),
    call("operator.mul", Ref(2), 0.5),
    call("paddle._C_ops.dropout", Ref(4), None, 0.5, False, "upscale_in_train", 0, False),
    call("operator.getitem", Ref(5), 0),
    call("paddle._C_ops.matmul", Ref(0), Ref(6), True, False),
    name="mixed",
)
"""A list that crosses, a write that is seen through another name, random numbers, and an operator
of Python, which a program of paddle spells in another way."""

PADDLE_UNCUT = paddle_graph(
    call("paddle._C_ops.nonzero"),
    call("paddle._C_ops.cast", Ref(1), Named("dtype", "float32")),
    name="nonzero",
)
"""Two operators between which a tensor crosses whose size only a run tells."""

PADDLE_ROUNDED = paddle_graph(call("operator.mul", Ref(0), 0.1), name="rounded", dtype="float64")
"""A program of paddle has 0.1 as a number of 32 bits."""

PADDLE_SLOPED = paddle_graph(call("paddle._C_ops.elu", Ref(0), 0.1), name="sloped")
"""The same 0.1, which elements of 32 bits make no use of."""

PADDLE_MISTYPED = paddle_graph(call("paddle._C_ops.matmul", Ref(0), 1, False, False), name="types")
"""Neither runs nor can be traced."""
