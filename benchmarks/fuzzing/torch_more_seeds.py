"""Valid calls of operators that torch has no samples of, by name without namespace."""

from __future__ import annotations

from typing import Any

from .specs import Named, Tensor


def _float(*shape: int) -> Tensor:
    return Tensor("float32", shape)


def _whole(*shape: int) -> Tensor:
    return Tensor("int64", shape, "small")


_MATRIX, _WEIGHTS = _float(3, 4), _float(3)
_OFFSETS = Tensor("int32", (2,), "data", data=(3, 8))
_MASK = Tensor("bool", (3, 4), "small")
_VARIANCE = Tensor("float32", (3,), "ones")
_CHANNELS, _STATISTICS = _float(2, 3, 4), (_WEIGHTS, _WEIGHTS, _WEIGHTS, _VARIANCE)
_VECTOR, _SQUARE = _float(8), _float(8, 8)
_LAYER = (
    _float(2, 3, 8), 8, 2, _float(24, 8), _float(24), _SQUARE, _VECTOR, False, False, 1e-5, _VECTOR,
    _VECTOR, _VECTOR, _VECTOR, _float(16, 8), _float(16), _float(8, 16), _VECTOR,
)  # fmt: skip
_ATTENDED, _IMAGE = _float(3, 2, 8), _float(1, 2, 6, 6)
_WHOLE = ((_whole(3, 4), _whole(3, 4)), (_whole(4), 1), (1, _whole(4)))


def _cell(gates: int, states: Any) -> tuple[tuple[Any, ...], ...]:
    rows = 4 * gates
    return ((_float(2, 3), states, _float(rows, 3), _float(rows, 4), _float(rows), _float(rows)),)


def _layer(gates: int) -> tuple[tuple[Any, ...], ...]:
    rows, state = 4 * gates, _float(1, 2, 4)
    states = [state, _float(1, 2, 4)] if gates == 4 else state
    weights = [_float(rows, 3), _float(rows, 4), _float(rows), _float(rows)]
    both = [*weights, *weights]
    two = [_float(2, 2, 4), _float(2, 2, 4)] if gates == 4 else _float(2, 2, 4)
    return (
        (_float(5, 2, 3), states, weights, True, 1, 0.0, False, False, False),
        (_float(2, 5, 3), states, weights, True, 1, 0.0, True, False, True),
        (_float(5, 2, 3), two, both, True, 1, 0.0, False, True, False),
    )


MORE: dict[str, tuple[tuple[Any, ...], ...]] = {
    "grouped_mm": (
        (Tensor("bfloat16", (8, 16)), Tensor("bfloat16", (2, 16, 8)), _OFFSETS),
        (_float(8, 16), _float(2, 16, 8), _OFFSETS),
        (Tensor("bfloat16", (2, 8, 16)), Tensor("bfloat16", (2, 16, 8))),
        (_float(2, 8, 16), _float(16, 8), _OFFSETS),
        (Tensor("bfloat16", (8, 8)), Tensor("bfloat16", (8, 16)), _OFFSETS),
    ),
    "transformer_encoder_layer_fwd": (
        (*_LAYER, None, None), (*_LAYER, Tensor("bool", (3, 3), "zeros"), 0),
        (*_LAYER, Tensor("bool", (2, 3), "zeros"), 1),
        (*_LAYER, Tensor("bool", (2, 2, 3, 3), "zeros"), 2),
    ),
    "lstm": _layer(4), "gru": _layer(3), "rnn_tanh": _layer(1), "rnn_relu": _layer(1),
    "lstm_cell": _cell(4, [_float(2, 4), _float(2, 4)]), "gru_cell": _cell(3, _float(2, 4)),
    "rnn_tanh_cell": _cell(1, _float(2, 4)), "rnn_relu_cell": _cell(1, _float(2, 4)),
    "batch_norm": (
        (_CHANNELS, *_STATISTICS, True, 0.1, 1e-5, True),
        (_CHANNELS, *_STATISTICS, False, 0.1, 1e-5, True),
    ),
    "instance_norm": ((_CHANNELS, *_STATISTICS, True, 0.1, 1e-5, True),),
    "native_batch_norm_legit_no_training": ((_CHANNELS, *_STATISTICS, 0.1, 1e-5),),
    "native_batch_norm_legit_functional": ((_CHANNELS, *_STATISTICS, True, 0.1, 1e-5),),
    "native_group_norm": ((_float(2, 4, 3), _float(4), _float(4), 2, 4, 3, 2, 1e-5),),
    "weight_norm": ((_MATRIX, _float(3, 1), 0), (_MATRIX, _float(1, 4), 1)),
    "conv1d": ((_float(1, 2, 8), _float(3, 2, 3), _WEIGHTS, [1], [0], [1], 1),),
    "conv_transpose1d": ((_float(1, 2, 8), _float(2, 3, 3), _WEIGHTS, [2], [0], [1], 1, [1]),),
    "max_pool1d": ((_float(1, 2, 8), [2], [2], [0], [1], False),),
    "max_pool2d": ((_IMAGE, [2, 2], [2, 2], [0, 0], [1, 1], False),),
    "adaptive_max_pool1d": ((_float(1, 2, 8), [3]),),
    "adaptive_max_pool1d_with_indices": ((_float(1, 2, 8), [3]),),
    "adaptive_max_pool2d_with_indices": ((_IMAGE, [3, 3]),),
    "adaptive_max_pool3d_with_indices": ((_float(1, 2, 4, 4, 4), [3, 3, 3]),),
    "grid_sampler": ((_IMAGE, _float(1, 3, 3, 2), 0, 0, True),),
    "multi_head_attention_forward": (
        (_ATTENDED, _ATTENDED, _ATTENDED, 8, 2, _float(24, 8), _float(24), None, None, False, 0.0,
         _SQUARE, _VECTOR),
    ),
    "upsample": ((_IMAGE, None, 2, "nearest"), (_IMAGE, [9, 9], None, "bilinear")),
    "interpolate": ((_IMAGE, None, 2, "nearest"), (_IMAGE, [9, 9], None, "bicubic")),
    "upsample_nearest1d": ((_float(1, 2, 8), [16], None), (_float(1, 2, 8), None, [2.0])),
    "meshgrid": (([_float(3), _float(4)],), ([_float(3), _float(4)], "ij")),
    "tensordot": ((_MATRIX, _float(4, 3), [1], [0]), (_MATRIX, _float(4, 3), 1)),
    "cosine_embedding_loss": ((_MATRIX, _MATRIX, Tensor("float32", (3,), "ones")),),
    "triplet_margin_with_distance_loss": ((_MATRIX, _MATRIX, _MATRIX),),
    "nll_loss": ((_MATRIX, _whole(3)), (_MATRIX, _whole(3), _float(4), 1, -100)),
    "nll_loss2d": ((_IMAGE, _whole(1, 6, 6), None, 1, -100),),
    "glu_jvp": ((_float(3, 2), _MATRIX, _MATRIX, 1),),
    "fill": ((_MATRIX, _float()), (_MATRIX, 2.0)),
    "is_any_true": ((Tensor("bool", (3,), "ones"),),),
    "is_all_true": ((Tensor("bool", (3,), "ones"),),),
    "embedding_bag": (
        (_whole(2, 3), _MATRIX),
        (_whole(2, 3), _MATRIX, None, None, 2.0, False, "sum", False, _float(2, 3), False, 1),
        (_whole(2, 3), _MATRIX, None, 1.0, 2.0, False, "max", False, None, True, -1),
    ),
    "where": ((_MASK, 1.5, 2), (_MASK, _MATRIX, 2)),
    "quantile": ((_MATRIX, 0.5, 1, False), (_MATRIX, Tensor("float32", (2,), "zeros"), 0, True)),
    "lp_pool1d": ((_float(1, 2, 8), 2.0, 2),), "lp_pool2d": ((_IMAGE, 2.0, [2, 2]),),
    "lp_pool3d": ((_float(1, 2, 4, 4, 4), 2.0, [2, 2, 2]),),
    "upsample_bicubic2d": ((_IMAGE, [9, 9], True, None), (_IMAGE, [9, 9], True)),
    "upsample_bilinear2d": ((_IMAGE, [9, 9], True, None), (_IMAGE, None, True, [2.0, 2.0])),
    "view": ((_MATRIX, [12]), (_MATRIX, Named("dtype", "int32"))),
    "split": ((_MATRIX, [1, 2], 0), (_MATRIX, 2, -1)), "sym_ite": ((True, 1, 2),),
    "bernoulli": ((_MATRIX, Tensor("float32", (3, 4), "ones")), (_MATRIX, 0.5)),
    "is_contiguous": ((_IMAGE, Named("memory_format", "channels_last")),),
    "functional_assert_async": ((Tensor("bool", (), "ones"), "no", _float()),),
    "check": ((True,),), "check_index": ((True,),), "fsum": (([0.5, 2.0],),),
    "cbrt": ((0.5,), (2,)), "index": ((_whole(),),), "float": ((_float(),), (2,)),
    "linalg_cond": ((_SQUARE, "fro"), (_SQUARE, 2.0)), "cond": ((_SQUARE, "nuc"), (_SQUARE, 1)),
    **dict.fromkeys(
        ("and", "or", "xor", "lshift", "rshift", "iand", "ior", "ixor", "ilshift", "irshift",
         "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"),
        _WHOLE,
    ),
}  # fmt: skip
"""Positional arguments alone; a name stands for its in-place form and for ATen's too."""
