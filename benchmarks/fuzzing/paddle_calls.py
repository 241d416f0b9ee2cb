"""Valid calls of paddle's operators, for the fuzzer to start from beside those that graphs have."""

from __future__ import annotations

from .specs import Named, Tensor

MATRIX, INDEX = Tensor("float32", (3, 4)), Tensor("int64", (3,), "small")
PYTHON = (
    (MATRIX, MATRIX), (MATRIX, 2),
    (Tensor("int64", (3, 4), "small"), Tensor("int64", (4,), "ones")),
    (Tensor("int32", (5,), "count"), 2), (MATRIX, 0), (3, 4), (Tensor("bool", (4,), "ones"), True),
)  # fmt: skip


_LABELS, _MASK = Tensor("int64", (3, 2), "small"), Tensor("bool", (3, 4), "small")
FLOAT, _PLACE = Named("dtype", "float32"), Named("place", "cpu")
_WHOLE = Named("dtype", "int64")
_IMAGE, _SQUARE = Tensor("float32", (2, 4, 6, 6)), Tensor("float32", (2, 4, 4))
_BOXES = Tensor("float32", (5, 4), "data", data=(0, 0, 9, 9, 1, 1, 4, 3, 2, 2, 90, 80, *range(8)))
_SCORES, _DELTAS = Tensor("float32", (1, 3, 4, 4)), Tensor("float32", (1, 12, 4, 4))


_FOUR, _ONES = Tensor("float32", (4,)), Tensor("float32", (4,), "ones")
_KERNEL, _BYTE = Tensor("float32", (4, 1, 3, 3)), Tensor("uint8", ())
_LSTM = [Tensor("float32", (20, 4)), Tensor("float32", (20, 5)), Tensor("float32", (20,))]
_GRU = [Tensor("float32", (15, 4)), Tensor("float32", (15, 5)), Tensor("float32", (15,))]


def _number(value: float) -> Tensor:
    return Tensor("float32", (1,), "data", data=(value,))


def _counts(*numbers: int) -> Tensor:
    return Tensor("int32", (len(numbers),), "data", data=numbers)


MORE: dict[str, tuple[tuple[object, ...], ...]] = {
    "argmax": ((MATRIX, 1, False, False, _WHOLE), (MATRIX, -1, True, True, _WHOLE)),
    "masked_select": ((MATRIX, _MASK),), "masked_fill": ((MATRIX, _MASK, Tensor("float32", ())),),
    "index_sample": ((MATRIX, _LABELS),),
    "put_along_axis": ((MATRIX, _LABELS, Tensor("float32", (3, 2)), 1, "add", True),),
    "amax": ((MATRIX, [1], True), (MATRIX, [], False)), "variance": ((MATRIX, [1], True),),
    "std": ((MATRIX, [0], False, True, 1.0),), "frobenius_norm": ((MATRIX, [0, 1], True, False),),
    "unique": ((INDEX, True, True, True, [], _WHOLE), (MATRIX, True, True, True, [0], _WHOLE)),
    "searchsorted": ((Tensor("float32", (5,), "count"), MATRIX, True, False),),
    "cummax": ((MATRIX, 1, _WHOLE), (MATRIX, -1, Named("dtype", "int32"))),
    "trace": ((MATRIX, 1, 0, 1),), "diagonal": ((_IMAGE, -1, 2, 3),),
    "diag_embed": ((MATRIX, 0, -2, -1),),
    "bincount": ((INDEX, None, 3), (INDEX, Tensor("float32", (3,)), 0)),
    "unstack": ((MATRIX, 0, 3),), "randint": ((0, 5, [2, 3], _WHOLE, _PLACE),),
    "gaussian": (([2, 3], 0.0, 1.0, 0, FLOAT, _PLACE),), "randperm": ((5, _WHOLE, _PLACE),),
    "bernoulli": ((Tensor("float32", (3, 4), "ones"),),),
    "fused_softmax_mask": ((_IMAGE, Tensor("float32", (2, 1, 6, 6))),),
    "affine_channel": ((_IMAGE, Tensor("float32", (4,)), Tensor("float32", (4,)), "NCHW"),),
    "triangular_solve": ((_SQUARE, _SQUARE, True, False, False),),
    "inverse": ((_SQUARE,),), "increment": ((Tensor("float32", (1,)), 1.0),), "det": ((_SQUARE,),),
    "index_add": ((MATRIX, INDEX, MATRIX, 0),), "matrix_power": ((_SQUARE, 3), (_SQUARE, -2)),
    "index_put": ((MATRIX, [INDEX, INDEX], Tensor("float32", (3,)), True),),
    "multinomial": ((Tensor("float32", (2, 5), "ones"), 2, True),),
    "full_int_array": (([1, 2], _WHOLE, _PLACE),), "median": ((MATRIX, [1], True, "avg"),),
    "logcumsumexp": ((MATRIX, 1, False, False, False),),
    "nms": ((Tensor("float32", (5, 4)), 0.5),),
    "fold": ((Tensor("float32", (1, 16, 25)), [6, 6], [2, 2], [1, 1], [0, 0, 0, 0], [1, 1]),),
    "huber_loss": ((MATRIX, MATRIX, 1.0),), "kldiv_loss": ((MATRIX, MATRIX, "mean", False),),
    "label_smooth": ((MATRIX, None, 0.1),), "temporal_shift": ((_IMAGE, 2, 0.25, "NCHW"),),
    "distribute_fpn_proposals": (
        (_BOXES, _counts(5), 2, 5, 4, 224, False),
        (_BOXES, Tensor("int64", (2,), "data", data=(2, 3)), 2, 5, 4, 224, False),
    ),
    "generate_proposals": (
        (_SCORES, _DELTAS, Tensor("float32", (1, 2), "huge"), Tensor("float32", (4, 4, 3, 4)),
         Tensor("float32", (4, 4, 3, 4), "ones"), 20, 10, 0.7, 0.0, 1.0, False),
        (_SCORES, _DELTAS, Tensor("float32", (1, 2), "ones"), Tensor("float32", (48, 4)),
         Tensor("float32", (48, 4), "ones"), 20, 10, 0.7, 0.0, 1.0, True),
    ),
    "roi_align": (
        (_IMAGE, _BOXES, _counts(2, 3), 2, 2, 0.5, 0, True),
        (_IMAGE, _BOXES, _counts(5, 0), 3, 2, 1.0, 2, False),
    ),
    "prior_box": ((_IMAGE, Tensor("float32", (2, 3, 24, 24)), [16.0, 24.0], [], [1.0, 2.0],
                   [0.1, 0.1, 0.2, 0.2], True, False, 8.0, 8.0, 0.5, False),),
    "cross_entropy_with_softmax": (
        (MATRIX, Tensor("int64", (3, 1), "small"), False, True, True, -100, -1),
        (MATRIX, MATRIX, True, True, True, -100, 1),
    ),
    "set_value_with_tensor": (
        (MATRIX, Tensor("float32", (3, 2)), [0], [2], [1], [1], [], []),
        (MATRIX, Tensor("float32", (3,)), [1], [2], [1], [1], [1], []),
        (MATRIX, MATRIX, [], [], [], [], [], []),
    ),
    "tensor_unfold": ((MATRIX, 1, 2, 1), (_IMAGE, 2, 3, 2)),
    "pool3d": ((Tensor("float32", (1, 2, 4, 4, 4)), [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True,
                "NCDHW", "avg", False, False, "EXPLICIT"),),
    "arange": ((_number(0), _number(9), _number(2), FLOAT, _PLACE),),
    "p_norm": ((MATRIX, 2.0, -1, 1e-12, False, False), (_IMAGE, 1.0, 1, 1e-12, True, False)),
    "nansum": ((MATRIX, [0], FLOAT, True),), "bmm": ((_SQUARE, _SQUARE),),
    "matmul_with_flatten": ((MATRIX, Tensor("float32", (4, 2)), 1, 1),),
    "batch_norm": ((_IMAGE, _FOUR, _ONES, _ONES, _FOUR, True, 0.9, 1e-5, "NCHW", True, False),
                   (_IMAGE, _FOUR, _ONES, _ONES, _FOUR, False, 0.9, 1e-5, "NCHW", False, False)),
    "dropout": ((MATRIX, None, 0.5, False, "upscale_in_train", 0, False),
                (MATRIX, None, _number(0.5), True, "downscale_in_infer", 0, True)),
    "rnn": (
        (Tensor("float32", (3, 2, 4)), [Tensor("float32", (1, 2, 5)), Tensor("float32", (1, 2, 5))],
         [*_LSTM, _LSTM[-1]], None, _BYTE, 0.0, False, 4, 5, 1, "LSTM", 0, True),
        (Tensor("float32", (3, 2, 4)), [Tensor("float32", (2, 2, 5))],
         _GRU[:2] * 2 + _GRU[2:] * 4,
         _counts(3, 1), _BYTE, 0.0, True, 4, 5, 1, "GRU", 0, True),
    ),
    "yolo_box": ((Tensor("float32", (1, 27, 3, 3)), Tensor("int32", (1, 2), "data", data=(96, 96)),
                  [116, 90, 156, 198, 373, 326], 4, 0.005, 32, True, 1.0, False, 0.5),),
    "depthwise_conv2d": (
        (_IMAGE, _KERNEL, [1, 1], [1, 1], "EXPLICIT", 4, [1, 1], "NCHW"),
        (Tensor("float32", (2, 6, 6, 4)), _KERNEL, [1, 1], [0, 1], "EXPLICIT", 4, [1, 1], "NHWC"),
    ),
    "depthwise_conv2d_bias": (
        (_IMAGE, _KERNEL, _FOUR, [1, 1], [1, 1], "EXPLICIT", 4, [1, 1], "NCHW"),
    ),
    "depthwise_conv2d_transpose": (
        (_IMAGE, _KERNEL, [2, 2], [1, 1], [], [], "EXPLICIT", 4, [1, 1], "NCHW"),
    ),
    "conv2d_transpose_bias": (
        (_IMAGE, Tensor("float32", (4, 2, 3, 3)), Tensor("float32", (2,)), [2, 2], [1, 1], [0, 0],
         [11, 11], "EXPLICIT", 1, [1, 1], "NCHW"),
    ),
    "deformable_conv": (
        (_IMAGE, Tensor("float32", (2, 18, 6, 6)), Tensor("float32", (3, 4, 3, 3)),
         Tensor("float32", (2, 9, 6, 6)), [1, 1], [1, 1], [1, 1], 1, 1, 1),
    ),
    "send_u_recv": ((MATRIX, INDEX, INDEX, "SUM", [0]), (MATRIX, INDEX, INDEX, "MAX", [3])),
    "set_value_": (
        (MATRIX, [0], [2], [1], [1], [], [], [1], [2.0]),
        (Tensor("int64", (3, 4), "count"), [0], [1], [1], [0], [0], [], [4], [1.0, 2.0, 3.0, 4.0]),
        (MATRIX, Tensor("int64", (1,), "zeros"), Tensor("int64", (1,), "ones"), [1], [0], [], [],
         [1], [2.0]),
    ),
    "full_": ((MATRIX, [2, 2], 1.0, FLOAT, _PLACE),),
    "bce_loss": ((Tensor("float32", (3, 1), "ones"), Tensor("float32", (3, 1), "zeros")),),
    "cholesky": ((Tensor("float32", (2, 2), "data", data=(2.0, 1.0, 1.0, 2.0)), False),),
    "imag": ((Tensor("complex64", (2, 3)),),), "real": ((Tensor("complex64", (2, 3)),),),
    "fused_softmax_mask_upper_triangle": ((Tensor("float32", (1, 2, 32, 32)),),),
    "rms_norm": ((MATRIX, Tensor("float32", (4,)), [4], 1e-5),),
    "slice": ((MATRIX, [0, 1], Tensor("int64", (2,), "zeros"), [2, 3], [-1, -1], []),),
    "tile": ((MATRIX, Tensor("int64", (2,), "ones")),),
    "split": ((MATRIX, Tensor("int64", (2,), "data", data=(1, 3)), Tensor("int32", (1,), "ones")),),
    "roll": ((MATRIX, Tensor("int64", (2,), "small"), [0, 1]),),
    "uniform": ((Tensor("int64", (2,), "ones"), FLOAT, 0.0, 1.0, 0, _PLACE),),
    "expand": ((MATRIX, Tensor("int64", (3,), "data", data=(2, 3, 4))),),
    "reshape": ((MATRIX, Tensor("int64", (2,), "data", data=(4, -1))),),
    "maxout": ((_IMAGE, 2, 1),), "norm": ((MATRIX, 1, 1e-10, False),),
    "mv": ((MATRIX, Tensor("float32", (4,))),),
    "einsum": (
        ([MATRIX, MATRIX], "ab,cb->ac"), ([_SQUARE, _SQUARE], "...ab,...bc->...ac"),
        ([_SQUARE], "abc->cba"), ([_SQUARE, _FOUR], "a...b,b->a..."), ([MATRIX], "ab->"),
        ([MATRIX, _FOUR, MATRIX], "ab,b,cb->ac"), ([Tensor("float32", (4, 4))], "aa->a"),
    ),
}  # fmt: skip
MORE |= {
    "argmin": MORE["argmax"],
    "amin": MORE["amax"],
    "sync_batch_norm": MORE["batch_norm"],
    "var": MORE["std"],
    "cummin": MORE["cummax"],
}
"""Valid calls of operators that no recorded graph has."""
