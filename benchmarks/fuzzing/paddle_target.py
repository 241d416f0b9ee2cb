"""The operators of paddle under test: their names, calls to start from, and how one is made."""

from __future__ import annotations

import functools
import gzip
import random
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import paddle

from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks.paddle.calls import check_lists
from graphnet_datasets.frameworks.paddle.checked import is_checked as checked
from graphnet_datasets.frameworks.paddle.guards import Guarded
from graphnet_datasets.frameworks.paddle.operators import CORE, OPERATORS, lookup, resolve
from graphnet_datasets.frameworks.paddle.signatures import argument_names

from .paddle_values import make
from .specs import Call, Mutator, Named, Tensor, read_call

SEEDS = Path(__file__).with_name("paddle_seeds.jsonl.gz")
_MATRIX, _INDEX = Tensor("float32", (3, 4)), Tensor("int64", (3,), "small")
_PYTHON_SEEDS = (
    (_MATRIX, _MATRIX), (_MATRIX, 2),
    (Tensor("int64", (3, 4), "small"), Tensor("int64", (4,), "ones")),
    (Tensor("int32", (5,), "count"), 2), (_MATRIX, 0), (3, 4), (Tensor("bool", (4,), "ones"), True),
)  # fmt: skip


_LABELS, _MASK = Tensor("int64", (3, 2), "small"), Tensor("bool", (3, 4), "small")
_FLOAT, _PLACE = Named("dtype", "float32"), Named("place", "cpu")
_WHOLE = Named("dtype", "int64")
_IMAGE, _SQUARE = Tensor("float32", (2, 4, 6, 6)), Tensor("float32", (2, 4, 4))
_BOXES = Tensor("float32", (5, 4), "data", data=(0, 0, 9, 9, 1, 1, 4, 3, 2, 2, 90, 80, *range(8)))
_SCORES, _DELTAS = Tensor("float32", (1, 3, 4, 4)), Tensor("float32", (1, 12, 4, 4))


def _counts(*numbers: int) -> Tensor:
    return Tensor("int32", (len(numbers),), "data", data=numbers)


_MORE: dict[str, tuple[tuple[object, ...], ...]] = {
    "argmax": ((_MATRIX, 1, False, False, _WHOLE), (_MATRIX, -1, True, True, _WHOLE)),
    "masked_select": ((_MATRIX, _MASK),), "masked_fill": ((_MATRIX, _MASK, Tensor("float32", ())),),
    "index_sample": ((_MATRIX, _LABELS),),
    "put_along_axis": ((_MATRIX, _LABELS, Tensor("float32", (3, 2)), 1, "add", True),),
    "amax": ((_MATRIX, [1], True), (_MATRIX, [], False)), "variance": ((_MATRIX, [1], True),),
    "std": ((_MATRIX, [0], False, True, 1.0),), "frobenius_norm": ((_MATRIX, [0, 1], True, False),),
    "unique": ((_INDEX, True, True, True, [], _WHOLE), (_MATRIX, True, True, True, [0], _WHOLE)),
    "searchsorted": ((Tensor("float32", (5,), "count"), _MATRIX, True, False),),
    "cummax": ((_MATRIX, 1, _WHOLE), (_MATRIX, -1, Named("dtype", "int32"))),
    "trace": ((_MATRIX, 1, 0, 1),), "diagonal": ((_IMAGE, -1, 2, 3),),
    "diag_embed": ((_MATRIX, 0, -2, -1),), "nansum": ((_MATRIX, [0], None, True),),
    "rms_norm": ((_MATRIX, Tensor("float32", (4,)), [4], 1e-5),),
    "bincount": ((_INDEX, None, 3), (_INDEX, Tensor("float32", (3,)), 0)),
    "unstack": ((_MATRIX, 0, 3),), "randint": ((0, 5, [2, 3], _WHOLE, _PLACE),),
    "gaussian": (([2, 3], 0.0, 1.0, 0, _FLOAT, _PLACE),), "randperm": ((5, _WHOLE, _PLACE),),
    "bernoulli": ((Tensor("float32", (3, 4), "ones"),),),
    "fused_softmax_mask": ((_IMAGE, Tensor("float32", (2, 1, 6, 6))),),
    "fused_softmax_mask_upper_triangle": ((_IMAGE,),),
    "affine_channel": ((_IMAGE, Tensor("float32", (4,)), Tensor("float32", (4,)), "NCHW"),),
    "matmul_with_flatten": ((_MATRIX, Tensor("float32", (4, 2)), 1, 1),),
    "triangular_solve": ((_SQUARE, _SQUARE, True, False, False),), "cholesky": ((_SQUARE, False),),
    "inverse": ((_SQUARE,),), "increment": ((Tensor("float32", (1,)), 1.0),), "det": ((_SQUARE,),),
    "index_add": ((_MATRIX, _INDEX, _MATRIX, 0),), "matrix_power": ((_SQUARE, 3), (_SQUARE, -2)),
    "index_put": ((_MATRIX, [_INDEX, _INDEX], Tensor("float32", (3,)), True),),
    "multinomial": ((Tensor("float32", (2, 5), "ones"), 2, True),),
    "full_int_array": (([1, 2], _WHOLE, _PLACE),), "median": ((_MATRIX, [1], True, "avg"),),
    "logcumsumexp": ((_MATRIX, 1, False, False, False),),
    "nms": ((Tensor("float32", (5, 4)), 0.5),),
    "fold": ((Tensor("float32", (1, 16, 25)), [6, 6], [2, 2], [1, 1], [0, 0, 0, 0], [1, 1]),),
    "huber_loss": ((_MATRIX, _MATRIX, 1.0),), "kldiv_loss": ((_MATRIX, _MATRIX, "mean", False),),
    "label_smooth": ((_MATRIX, None, 0.1),), "temporal_shift": ((_IMAGE, 2, 0.25, "NCHW"),),
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
        (_MATRIX, Tensor("int64", (3, 1), "small"), False, True, True, -100, -1),
        (_MATRIX, _MATRIX, True, True, True, -100, 1),
    ),
    "set_value_with_tensor": (
        (_MATRIX, Tensor("float32", (3, 2)), [0], [2], [1], [1], [], []),
        (_MATRIX, Tensor("float32", (3,)), [1], [2], [1], [1], [1], []),
        (_MATRIX, _MATRIX, [], [], [], [], [], []),
    ),
    "tensor_unfold": ((_MATRIX, 1, 2, 1), (_IMAGE, 2, 3, 2)),
    "pool3d": ((Tensor("float32", (1, 2, 4, 4, 4)), [2, 2, 2], [2, 2, 2], [0, 0, 0], False, True,
                "NCDHW", "avg", False, False, "EXPLICIT"),),
    "maxout": ((_IMAGE, 2, 1),), "norm": ((_MATRIX, 1, 1e-10, False),),
    "mv": ((_MATRIX, Tensor("float32", (4,))),),
}  # fmt: skip
_MORE |= {
    "argmin": _MORE["argmax"],
    "amin": _MORE["amax"],
    "var": _MORE["std"],
    "cummin": _MORE["cummax"],
}
"""Valid calls of operators that no recorded graph has."""


def set_up() -> None:
    """Make paddle quiet, and do once what every forked process would do again."""
    warnings.simplefilter("ignore")
    paddle.disable_signal_handler()
    GraphNetError("compiles the patterns that credentials are found by")
    seeds_of(f"{CORE}add")
    argument_names("add")


@functools.cache
def names() -> tuple[str, ...]:
    """Return every operator of the table that the installed paddle has."""
    return tuple(sorted(name for name in OPERATORS if _exists(name)))


def _exists(name: str) -> bool:
    try:
        return bool(resolve(lookup(name)))
    except GraphNetError:
        return False


@functools.cache
def _seeds() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = defaultdict(list)
    with gzip.open(SEEDS, "rt") as file:
        for line in file:
            call = read_call(line)
            found[call.name].append(call)
    return found


@functools.cache
def seeds_of(name: str) -> tuple[Call, ...]:
    """Return calls to start from: recorded ones, or those of the form that does not write."""
    own = [Call(name, args) for args in _MORE.get(name.removeprefix(CORE).removesuffix("_"), ())]
    own += _seeds().get(name, ())
    if name.endswith("_"):
        own += [Call(name, call.args) for call in _seeds().get(name[:-1], ())]
    if name.startswith("operator."):
        own += [Call(name, args) for args in _PYTHON_SEEDS]
    if name == "paddle.to_tensor":
        own += [Call(name, ([1, -2, 3],)), Call(name, ([[1.5, 2], [3, 4]], _FLOAT))]
    if name.startswith("paddle.Tensor."):
        own += [Call(name, (_MATRIX,)), Call(name, (_MATRIX, [4, 3]))]
    return tuple(own) or (Call(name, (_MATRIX, _MATRIX)), Call(name, (_MATRIX, _INDEX)))


def attempt(name: str, seed: str) -> tuple[Call, Callable[[], bool]]:
    """Return a call by chance, and what makes it on real tensors."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    starts = seeds_of(name)
    call = Mutator(chance).mutate(chance.choice(starts), list(starts))
    return call, functools.partial(_run, call, chance)


def _run(call: Call, chance: random.Random) -> bool:
    if call.name.startswith(CORE):
        if len(call.args) != len(argument_names(call.name.removeprefix(CORE))):
            return False  # refused when a plan is made
        check_lists(call.args)
    with paddle.no_grad():
        operator = lookup(call.name)
        run = resolve(operator)
        if checked(operator):
            run = Guarded(call.name, run)
        read(run(*(make(arg, chance) for arg in call.args)))
    return True


def read(result: Any) -> None:
    """Read what a call gave, as whoever uses it will."""
    if isinstance(result, paddle.Tensor):
        if result._is_initialized() and result.size < 1_000_000:
            result.numpy()
    elif isinstance(result, list | tuple):
        for item in result[:50]:
            read(item)


def is_checked(name: str) -> bool:
    """Tell whether `materialize` takes the operator unasked."""
    return checked(lookup(name))
