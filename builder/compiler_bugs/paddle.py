"""Bugs of paddle's static graphs.

`paddle.jit.to_static`, which captures of paddle use, fails on these graphs, so their operators are
written by hand.
"""

from __future__ import annotations

import numpy as np

from graphnet_datasets.sample import Input, Op, Provenance, Sample, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref

from .bug import PREFIX, SOURCE, Bug

REPOSITORY = "PaddlePaddle/Paddle/issues"
FOLLOWER = np.linspace(0.5, 1.5, 4, dtype=np.float32)


def _bug(
    name: str,
    title: str,
    report: int | None,
    versions: str,
    note: str,
    array: np.ndarray,
    *ops: Op,
    compiler: str = "paddle-to-static",
) -> Bug:
    """Return a bug whose graph applies `ops` to one array, and scales a second input by 2."""
    scale = Op("paddle._C_ops.scale", (Ref(1), 2.0, 0.0, True))
    sample = Sample(
        id=f"{PREFIX}/paddle/{name}",
        framework="paddle",
        task="other",
        inputs=tuple(
            Input("input", Value(str(elements.dtype), elements.shape), data=elements.tobytes())
            for elements in (array, FOLLOWER)
        ),
        ops=(*ops, scale),
        outputs=(Ref(1 + len(ops)), Ref(2 + len(ops))),
        provenance=Provenance(source=SOURCE, license="Apache-2.0"),
    )
    return Bug(
        name=f"paddle/{name}",
        title=title,
        compiler=compiler,
        report=None if report is None else f"{REPOSITORY}/{report}",
        versions=versions,
        note=note,
        inputs=(array,),
        sample=sample,
        framework="paddle",
    )


def _scale(operand: int, factor: float = 1.0) -> Op:
    """Return a product with a number; `factor` 1 copies the operand."""
    return Op("paddle._C_ops.scale", (Ref(operand), factor, 0.0, True))


def _assign(operand: int, row: int, column: int | None = None, value: float = 99.0) -> Op:
    """Return the assignment of a number to a row, or to one element, in place."""
    starts, axes = ((row,), (0,)) if column is None else ((row, column), (0, 1))
    ends, steps = tuple(start + 1 for start in starts), tuple(1 for _ in starts)
    numbers = (1,), ListArg((value,))
    return Op(
        "paddle._C_ops.set_value_", (Ref(operand), starts, ends, steps, axes, axes, (), *numbers)
    )


_MATRICES = np.array([[[1, 2], [2, 4]], [[1, 0], [0, 1]]], np.float32)
_MATRIX = np.array([[0, 1], [2, 3]], np.float32)
_INTEGERS = np.array([3, 1, 3, 2, 1, 4, 4, 4], np.int64)
_FLOAT32 = Named("dtype", "float32")
_INT64 = Named("dtype", "int64")
_CAST = "paddle._C_ops.cast"

BUGS = (
    _bug(
        "matrix-rank-cast",
        "The rank of matrices cannot be cast in a static graph",
        79235,
        "3.3.1",
        "The ranks are int64 and cast to float32: 1 and 2. In a static graph their dtype is "
        "assumed to be float32, so the cast is dropped or fails.",
        _MATRICES,
        Op("paddle._C_ops.matrix_rank", (Ref(0), 0.0, True, False)),
        Op(_CAST, (Ref(2), _FLOAT32)),
    ),
    _bug(
        "unique-cast",
        "The result of unique cannot be cast in a static graph",
        78872,
        "3.3.0",
        "The unique elements are int64 and cast to float32: 1, 2, 3 and 4. In a static graph "
        "their dtype is assumed to be float32, and the cast raises an error.",
        _INTEGERS,
        Op("paddle._C_ops.unique", (Ref(0), True, True, True, (), _INT64)),
        Op("operator.getitem", (Ref(2), 0)),
        Op(_CAST, (Ref(3), _FLOAT32)),
    ),
    _bug(
        "flatten-view",
        "A flattened view keeps the old elements",
        79127,
        "3.3.0",
        "`flatten` returns a view: an assignment to the original tensor changes the view. In a "
        "static graph the view keeps the elements from before the assignment.",
        _MATRIX,
        _scale(0),
        Op("paddle._C_ops.flatten", (Ref(2), 0, 1)),
        _assign(2, 0, 0),
        _scale(3),
    ),
    _bug(
        "diagonal-view",
        "A view of the diagonal keeps the old elements",
        79146,
        "3.3.0",
        "`diagonal` returns a view: an assignment to the matrix changes the view. In a static "
        "graph the view keeps the elements from before the assignment.",
        _MATRIX,
        _scale(0),
        Op("paddle._C_ops.diagonal", (Ref(2), 0, 0, 1)),
        _assign(2, 1, 1),
        _scale(3),
    ),
    _bug(
        "transpose-view",
        "A transposed view keeps the old elements",
        79147,
        "3.3.0",
        "`transpose` returns a view: an assignment to a row changes a column of the view. In a "
        "static graph the view keeps the elements from before the assignment.",
        _MATRIX,
        _scale(0),
        Op("paddle._C_ops.transpose", (Ref(2), (1, 0))),
        _assign(2, 0),
        _scale(3),
    ),
    _bug(
        "add-in-place",
        "An addition in place is lost in Paddle Inference",
        None,
        "none known",
        "`add_` changes its first operand. In a saved program the operand keeps its old elements. "
        "Issue 79145 reports the same for `Tensor.add_` in a static graph.",
        _MATRIX,
        _scale(0),
        _scale(0, 10.0),
        Op("paddle._C_ops.add_", (Ref(2), Ref(3))),
        _scale(2),
        compiler="paddle-inference",
    ),
    _bug(
        "scale-float64",
        "A float64 factor is rounded to float32",
        None,
        "none known",
        "In float64, 0.1 times 10 times x is x. In a static graph the factor 0.1 is stored in "
        "float32, which adds 1.5e-8 times x. The graph magnifies the difference.",
        np.array([1.0, 3.0, -7.0], np.float64),
        _scale(0, 0.1),
        _scale(2, 10.0),
        Op("paddle._C_ops.subtract", (Ref(3), Ref(0))),
        _scale(4, 2.0**30),
    ),
)
