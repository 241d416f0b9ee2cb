"""Bugs of paddle's static graphs.

The captures of paddle go through `paddle.jit.to_static`, which fails on these graphs, so their
operators are written by hand.
"""

from __future__ import annotations

import numpy as np

from graphnet_datasets.sample import Input, Op, Provenance, Sample, Value
from graphnet_datasets.sample.arguments import Named, Ref

from .bug import PREFIX, SOURCE, Bug

REPOSITORY = "PaddlePaddle/Paddle/issues"
FOLLOWER = np.linspace(0.5, 1.5, 4, dtype=np.float32)


def _sample(name: str, array: np.ndarray, ops: tuple[Op, ...], result: int) -> Sample:
    """Return a graph of one array and of a second input that is scaled by 2."""
    scale = Op("paddle._C_ops.scale", (Ref(1), 2.0, 0.0, True))
    return Sample(
        id=f"{PREFIX}/{name}",
        framework="paddle",
        task="other",
        inputs=tuple(
            Input("input", Value(str(elements.dtype), elements.shape), data=elements.tobytes())
            for elements in (array, FOLLOWER)
        ),
        ops=(*ops, scale),
        outputs=(Ref(result), Ref(2 + len(ops))),
        provenance=Provenance(source=SOURCE, license="Apache-2.0"),
    )


_MATRICES = np.array([[[1, 2], [2, 4]], [[1, 0], [0, 1]]], np.float32)
_FLOAT32 = Named("dtype", "float32")

BUGS = (
    Bug(
        name="paddle/matrix-rank-cast",
        title="The rank of matrices cannot be cast in a static graph",
        compiler="paddle-to-static",
        report=f"{REPOSITORY}/79235",
        versions="3.3.1",
        note="The ranks are int64 and cast to float32: 1 and 2. In a static graph their dtype is "
        "taken for float32, so that the cast is dropped or fails.",
        inputs=(_MATRICES,),
        sample=_sample(
            "paddle/matrix-rank-cast",
            _MATRICES,
            (
                Op("paddle._C_ops.matrix_rank", (Ref(0), 0.0, True, False)),
                Op("paddle._C_ops.cast", (Ref(2), _FLOAT32)),
            ),
            3,
        ),
        framework="paddle",
    ),
)
