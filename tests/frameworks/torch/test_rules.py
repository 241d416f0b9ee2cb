"""Rules for the shapes of common operators say what torch says, or nothing."""

from __future__ import annotations

import dataclasses
import itertools
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from graphnet_datasets import load_dataset, materialize
from graphnet_datasets.errors import MemoryLimitError, TimeLimitError, UncheckedOperatorError
from graphnet_datasets.frameworks.torch.operators import is_checked, is_walkable, lookup, resolve
from graphnet_datasets.frameworks.torch.shapes import Footprint, check_memory, measure_footprint
from graphnet_datasets.frameworks.torch.walking import repeated_calls, walk
from graphnet_datasets.frameworks.torch.walking.forms import (
    Form,
    Storage,
    UnfitError,
    fake_of,
    form_of,
)
from graphnet_datasets.frameworks.torch.walking.number_rules import PAIR_RULES
from graphnet_datasets.frameworks.torch.walking.operands import is_trusting
from graphnet_datasets.frameworks.torch.walking.rules import RULES, apply_rule
from graphnet_datasets.sample import Input, Op, Sample, Statistics, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Ref

F32, F16, I64, BOOL = torch.float32, torch.float16, torch.int64, torch.bool


def tensor(draw: random.Random, shape: tuple[int, ...], dtype: torch.dtype = F32) -> torch.Tensor:
    """Return a tensor of a shape: contiguous, permuted, with gaps, or of larger memory."""
    way = draw.choice(("plain", "plain", "permuted", "sliced", "expanded"))
    if way == "permuted":
        order = draw.sample(range(len(shape)), len(shape))
        made = torch.zeros([shape[axis] for axis in order], dtype=dtype, device="meta")
        return made.permute([order.index(axis) for axis in range(len(shape))])
    if way == "sliced" and shape:
        made = torch.zeros((*shape[:-1], shape[-1] + 2), dtype=dtype, device="meta")
        return made[..., 1:-1]
    if way == "expanded" and shape:
        held = list(shape)
        held[draw.randrange(len(shape))] = 1
        return torch.zeros(held, dtype=dtype, device="meta").expand(shape)
    return torch.zeros(shape, dtype=dtype, device="meta")


def shape(draw: random.Random, rank: int | None = None) -> tuple[int, ...]:
    return tuple(draw.choice((1, 2, 3, 4, 6)) for _ in range(rank or draw.randint(1, 4)))


ARITHMETIC = (
    "add", "sub", "mul", "div", "truediv", "iadd", "imul", "eq", "ne", "lt", "le", "gt", "ge",
    "add_", "mul_", "sub_", "div_", "isub", "itruediv", "__eq__",
)  # fmt: skip
OF_THE_CPU = (
    "torch.conv1d",
    "torch.conv2d",
    "torch.conv3d",
    "torch.nn.functional.scaled_dot_product_attention",
)


def of_layers(name: str, draw: random.Random) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return random arguments of pools, paddings and attention, None for other operators."""
    last = name.rpartition(".")[2]
    image = tensor(draw, (draw.randint(1, 2), draw.randint(1, 3), *[draw.choice((1, 6, 9))] * 2))
    if draw.random() < 0.3:
        image = image.contiguous(memory_format=torch.channels_last)
    if last in ("max_pool2d", "avg_pool2d"):
        window = draw.choice((2, 3, (3, 2)))
        rest = (draw.choice((None, 1, 2)), draw.choice((0, 1)))
        return (image, window, *rest), draw.choice(({}, {"ceil_mode": draw.random() < 0.5}))
    if last == "interpolate":
        mode = draw.choice(("nearest", "bilinear", "bicubic"))
        corners = None if mode == "nearest" else draw.choice((None, True, False))
        sizes = draw.choice(({"size": (7, 3)}, {"scale_factor": draw.choice((2, 0.4, 1.5))}))
        return (image,), {"mode": mode, "align_corners": corners, **sizes}
    sizes = shape(draw)
    if last == "pad":
        given = draw.choice((image, tensor(draw, sizes)))
        edges = [draw.randint(-1, 3) for _ in range(2 * draw.randint(1, given.dim()))]
        return (given, edges), draw.choice(({}, {"value": 0.5}, {"mode": "constant"}))
    if last == "glu":
        return (tensor(draw, sizes), draw.randint(-len(sizes), len(sizes) - 1)), {}
    if last == "rms_norm":
        tail = sizes[-draw.randint(1, len(sizes)) :]
        weight = tensor(draw, tail) if draw.random() < 0.6 else None
        return (tensor(draw, sizes), tail, weight, draw.choice((None, 1e-5))), {}
    if last == "addmm":
        rows, inner, columns = (draw.randint(1, 4) for _ in range(3))
        bias = tensor(draw, (draw.choice((columns, 5)),))
        return (bias, tensor(draw, (rows, inner)), tensor(draw, (inner, columns))), {}
    if last == "multi_head_attention_forward":
        length, other, batch, width = draw.randint(1, 4), draw.randint(1, 4), 2, 6
        query, key = tensor(draw, (length, batch, width)), tensor(draw, (other, batch, width))
        weights = [torch.zeros(each, device="meta") for each in ((18, 6), (18,), (6, 6), (6,))]
        heads = draw.choice((1, 2, 3))
        first = (query, key, key, width, heads, weights[0], weights[1], None, None, False, 0.1)
        asked = {"need_weights": draw.random() < 0.6, "average_attn_weights": draw.random() < 0.6}
        return (*first, weights[2], weights[3]), {"training": False, **asked}
    return None


def of_makers(name: str, draw: random.Random) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return random arguments of operators that make or copy, None for other operators."""
    last = name.rpartition(".")[2]
    sizes = shape(draw)
    axis = draw.randint(-len(sizes) - 1, len(sizes))
    x = tensor(draw, sizes, draw.choice((F32, F32, F16, I64, BOOL)))
    options: dict[str, Any] = draw.choice(
        ({}, {"dtype": draw.choice((F16, I64, None))}, {"device": torch.device("cpu")})
    )
    value = draw.choice((1, 0.5, True))
    if last in ("zeros", "ones"):
        if draw.random() < 0.2:
            return (), {"size": draw.choice((sizes, list(sizes), [])), **options}
        return draw.choice(((sizes,), sizes, ([],))), options
    if last == "full":
        return (draw.choice((list(sizes), ())), value), options
    if last == "arange":
        bounds = [draw.randint(-3, 9) for _ in range(draw.randint(1, 3))]
        if draw.random() < 0.3:
            return (), dict(zip(("end", "start", "step"), bounds, strict=False)) | options
        return (*bounds,), options
    if last == "meshgrid":
        lines = [tensor(draw, shape(draw, 1), x.dtype) for _ in range(draw.randint(1, 3))]
        return draw.choice(((lines,), tuple(lines))), {"indexing": draw.choice(("ij", "ij", "xy"))}
    if last == "linspace":
        return (0, draw.choice((1, 2.5)), draw.randint(0, 5)), options
    if last in ("index_select", "gather"):
        wanted = shape(draw, 1) if last == "index_select" else shape(draw, len(sizes))
        kind = draw.choice((I64, I64, I64, torch.int32 if last == "index_select" else F32))
        return (x, axis, tensor(draw, wanted, kind)), {}
    if last == "tensor":
        return (draw.choice(([], [], [1.0])),), options
    options.pop("device", None)
    if last in ("zeros_like", "ones_like", "empty_like"):
        return (x,), options
    if last == "full_like":
        return (x, value), options
    if last in ("new_zeros", "new_ones"):
        return (x, *draw.choice(((sizes[::-1],), sizes[::-1], ([],)))), options
    if last == "new_full":
        return (x, sizes[::-1], value), options
    if last == "stack":
        others = [tensor(draw, sizes, x.dtype) for _ in range(draw.randint(1, 3))]
        return ([x.contiguous(), *others], axis), {}
    if last == "repeat":
        return (x, *[draw.randint(0, 3) for _ in range(len(sizes) + draw.randint(-1, 2))]), {}
    if last == "roll":
        return (x, draw.choice((1, [1, 2])), draw.choice((axis, [0, -1], None))), {}
    if last in ("squeeze", "cumsum"):
        plain = axis if last == "cumsum" or draw.random() < 0.7 else None
        return ((x,) if plain is None else (x, plain)), {}
    if last in ("and_", "or_", "xor"):
        other = draw.choice((sizes, sizes[-1:], tuple(draw.choice((1, size)) for size in sizes)))
        return (x, tensor(draw, other, draw.choice((BOOL, x.dtype)))), {}
    if last in ("type_as", "view_as", "reshape_as"):
        wanted = sizes if last == "type_as" else tuple(other_shape(draw, sizes))
        return (x, tensor(draw, wanted, F16)), {}
    if last == "expand_as":
        wanted = [5 if size == 1 and draw.random() < 0.7 else size for size in sizes]
        return (x, tensor(draw, (*[2] * draw.randint(0, 1), *wanted))), {}
    if last == "slice":
        return (x, axis, draw.choice((None, 0, 1, -2)), draw.choice((None, 2, -1)),
                draw.choice((1, 2))), {}  # fmt: skip
    if last == "setitem":
        place = index(draw, sizes)
        other = tensor(draw, draw.choice((sizes, sizes[-1:], (1,))), x.dtype)
        return (x, place, draw.choice((1, 0.5, other))), {}
    if last == "where":
        others = [draw.choice((tensor(draw, sizes), tensor(draw, sizes[-1:]), 0.5, 2))
                  for _ in range(2)]  # fmt: skip
        return (tensor(draw, sizes, BOOL), *others), {}
    if last == "sum":
        dims = draw.choice((axis, [axis], list({axis, 0}), None))
        return (x, dims), {"keepdim": draw.random() < 0.3}
    if last == "group_norm":
        image = tensor(draw, (draw.randint(1, 2), 6, *shape(draw, draw.randint(1, 2))))
        each = [torch.zeros(6, device="meta") if draw.random() < 0.7 else None for _ in range(2)]
        return (image, draw.choice((1, 2, 3)), *each, 1e-5), {}
    if last == "scaled_dot_product_attention":
        batch, heads, length, other, width = (draw.randint(1, 4) for _ in range(5))
        query = tensor(draw, (batch, length, heads, width)).transpose(1, 2)
        held = [torch.zeros(batch, other, heads, width, device="meta").transpose(1, 2)] * 2
        cover = torch.zeros(*(draw.choice((1, size)) for size in (batch, heads, length, other)),
                            dtype=draw.choice((BOOL, F32, F16)), device="meta")  # fmt: skip
        rest: dict[str, Any] = draw.choice(
            ({}, {"is_causal": True}, {"scale": 0.5}, {"dropout_p": 0.1}, {"attn_mask": cover})
        )
        return (query, *held), rest
    if last == "prelu":
        sizes = shape(draw, draw.randint(2, 4))
        return (tensor(draw, sizes), tensor(draw, (draw.choice((1, sizes[1])),))), {}
    if last == "hardtanh":
        return (x, 0.0, 6.0, draw.random() < 0.3), {}
    if last == "leaky_relu":
        return (x, 0.1, draw.random() < 0.3), {}
    if last == "clamp":
        return (x, draw.choice((None, 0, 0.5)), draw.choice((None, 1.0))), {}
    return None


def of_numbers(name: str, draw: random.Random) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return random arguments of operators on sizes, None for others and most pairs of tensors."""
    last = name.rpartition(".")[2]
    first, second, third = (draw.choice((0, 1, 5, -3, 2**20, 2**33)) for _ in range(3))
    truth = draw.random() < 0.7
    if name == "torch.ops.aten.sym_size.int":
        sizes = shape(draw)
        return (tensor(draw, sizes), draw.randint(-len(sizes) - 1, len(sizes))), {}
    if last == "sym_sum":
        return (draw.choice(([], [first], [first, second], (first, second, third))),), {}
    if last == "sym_ite":
        return (truth, first, second), {}
    if last == "sym_not":
        return (draw.choice((truth, first)),), {}
    if last in ("sym_max", "sym_min", "floordiv", "mod"):
        return (first, draw.choice((second, 0.5))), {}
    if name == "torch.ops.aten._assert_scalar.default":
        return (draw.choice((truth, truth, first)), "it is not so"), {}
    if name in PAIR_RULES and draw.random() < 0.2:
        return (first, second), {}
    return None


def of_orders(name: str, draw: random.Random) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return random arguments of operators that put into order, None for other operators."""
    last = name.rpartition(".")[2]
    sizes = shape(draw)
    axis = draw.randint(-len(sizes) - 1, len(sizes))
    x = tensor(draw, sizes, draw.choice((F32, F16, I64, BOOL)))
    if last == "topk":
        named = draw.choice(({}, {"dim": axis}, {"sorted": False}, {"largest": False, "dim": -1}))
        return (x, draw.randint(0, 3)), named
    if last == "argmax":
        return draw.choice(((x,), (x, axis), (x, axis, draw.random() < 0.5))), {}
    if last in ("sort", "argsort"):
        named = draw.choice(({}, {}, {"descending": True}, {"stable": draw.random() < 0.5}))
        return draw.choice(((x,), (x, axis))), named
    return None


def arguments(name: str, draw: random.Random) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return random arguments of an operator, which often fit, and in part do not."""
    for of_kind in (of_numbers, of_orders, of_layers, of_makers):
        if (found := of_kind(name, draw)) is not None:
            return found
    last = name.rpartition(".")[2]
    dtype = draw.choice((F32, F32, F32, F16, I64))
    sizes = shape(draw)
    axis = draw.randint(-len(sizes) - 1, len(sizes))
    x = tensor(draw, sizes, dtype)
    if last in ARITHMETIC:
        other = draw.choice(
            (tensor(draw, sizes, dtype), tensor(draw, (sizes[-1],), dtype), 2, 0.5, True,
             tensor(draw, tuple(1 if draw.random() < 0.4 else size for size in sizes), F32),
             tensor(draw, sizes, BOOL), tensor(draw, sizes[-1:], I64),
             tensor(draw, (), draw.choice((F32, F16, I64, BOOL))))
        )  # fmt: skip
        return (
            (other, x) if draw.random() < 0.2 and name[0] == "o" and last[0] != "i" else (x, other)
        ), {}
    if last in ("pow", "pow_", "ipow"):
        return (x, draw.choice((2, 0.5, 3, x))), {}
    if last in ("index_add", "scatter_add", "scatter_add_"):
        return of_sums(last, draw, sizes, axis)
    if last in ("softmax", "log_softmax"):
        return (x, axis), draw.choice(({}, {}, {"dtype": draw.choice((F32, F16, I64, None))}))
    if last == "unbind":
        return (x, axis), {}
    if last in ("dropout", "dropout2d"):
        x = x if last == "dropout" else tensor(draw, shape(draw, 4), dtype)
        return (x, 0.1, draw.random() < 0.2, draw.random() < 0.5), {}
    if last in ("masked_fill", "masked_fill_"):
        cover = tensor(draw, draw.choice((sizes, sizes[-1:])), BOOL)
        single = tensor(draw, (), draw.choice((F32, F32, F16, I64)))
        return (x, cover, draw.choice((1.5, -float("inf"), 0, single))), {}
    if last == "linear":
        out = draw.randint(1, 5)
        fitting = sizes[-1] if draw.random() < 0.9 else 7
        bias = tensor(draw, (out,), dtype) if draw.random() < 0.5 else None
        return (x, tensor(draw, (out, fitting), dtype), bias), {}
    if last in ("matmul", "bmm"):
        rank = 3 if last == "bmm" else draw.randint(2, 4)
        sizes = shape(draw, rank)
        other = (*sizes[:-2], sizes[-1], draw.randint(1, 4))
        return (tensor(draw, sizes), tensor(draw, other)), {}
    if last in ("max", "maximum", "min", "minimum"):
        other = draw.choice((sizes, sizes[-1:], tuple(draw.choice((1, size)) for size in sizes)))
        return (x, tensor(draw, other, draw.choice((dtype, dtype, F32)))), {}
    if last in ("conv1d", "conv2d", "conv3d"):
        rank = int(last[4])
        groups = draw.choice((1, 1, 2))
        channels = groups * draw.randint(1, 3)
        image = tensor(draw, (draw.randint(1, 2), channels, *[draw.choice((1, 5, 8))] * rank))
        kernel = tensor(draw, (2 * groups, channels // groups, *[draw.choice((1, 3))] * rank))
        bias = tensor(draw, (2 * groups,)) if draw.random() < 0.5 else None
        padding = draw.choice((0, 1, (1,) * rank, "same", "valid"))
        return (image, kernel, bias, draw.choice((1, 2, (2,) * rank)), padding, 1, groups), {}
    if last == "conv_transpose2d":
        groups = draw.choice((1, 1, 2))
        channels = groups * draw.randint(1, 3)
        image = tensor(draw, (draw.randint(1, 2), channels, *[draw.choice((1, 5, 8))] * 2))
        kernel = tensor(draw, (channels, draw.randint(1, 2), *[draw.choice((1, 3))] * 2))
        bias = tensor(draw, (kernel.shape[1] * groups,)) if draw.random() < 0.5 else None
        rest = (draw.choice((1, 2)), draw.choice((0, 1)), draw.choice((0, 1)), groups)
        return (image, kernel, bias, *rest), {}
    if last in ("triu", "tril"):
        return (x, *draw.choice(((), (1,), (-1,)))), {}
    if last == "batch_norm":
        sizes = shape(draw, draw.randint(2, 4))
        channels = sizes[1] if draw.random() < 0.9 else 5
        each = [tensor(draw, (channels,)) for _ in range(4)]
        return (tensor(draw, sizes), *each, draw.random() < 0.2, 0.1, 1e-5), {}
    if last == "layer_norm":
        tail = sizes[-draw.randint(1, len(sizes)) :]
        held = [tensor(draw, tail) if draw.random() < 0.6 else None for _ in range(2)]
        return (tensor(draw, sizes), tail, *held, 1e-5), {}
    if last == "adaptive_avg_pool2d":
        return (tensor(draw, shape(draw, 4)), draw.choice((1, 2, (1, 1), (2, 3)))), {}
    if last == "mean":
        dims = draw.choice((axis, [axis], list({axis, 0}), -1))
        return (tensor(draw, sizes), dims), {"keepdim": draw.random() < 0.5}
    if last == "embedding":
        rest = draw.choice(((), (None,), (0, None, 2.0, False, False)))
        return (tensor(draw, sizes, I64), tensor(draw, (9, 4)), *rest), {}
    if last == "transpose":
        return (x, axis, draw.randint(0, len(sizes) - 1)), {}
    if last == "permute":
        order = draw.sample(range(len(sizes)), len(sizes))
        return ((x, *order) if name.startswith("torch.Tensor") else (x, order)), {}
    if last in ("view", "reshape"):
        wanted = other_shape(draw, sizes)
        if draw.random() < 0.3:
            wanted[draw.randrange(len(wanted))] = -1
        return ((x, *wanted) if name.startswith("torch.Tensor") else (x, wanted)), {}
    if last in ("flatten", "unsqueeze"):
        return (x, axis), {}
    if last == "to":
        named: dict[str, Any] = draw.choice(({}, {"copy": True}, {"non_blocking": True}))
        return (x, draw.choice((F32, F16, dtype, "cpu"))), named
    if last == "expand":
        wanted = [5 if size == 1 and draw.random() < 0.7 else size for size in sizes]
        return (x, *([-1] * draw.randint(0, 1)), *wanted), {}
    if last == "getitem":
        if draw.random() < 0.2:
            place = tensor(draw, shape(draw, draw.randint(1, 2)), draw.choice((I64, BOOL)))
            return (x, draw.choice((place, (place, place), (place, place[-1:])))), {}
        return (x, index(draw, sizes)), {}
    if last == "split":
        size = sizes[axis % len(sizes)]
        return (x, draw.choice((1, 2, size, [1, size - 1])), axis), {}
    if last == "chunk":
        return (x, draw.randint(1, 4), axis), {}
    if last in ("cat", "concat"):
        axis = draw.randrange(len(sizes))
        parts = [tensor(draw, (*sizes[:axis], n, *sizes[axis + 1 :]), dtype) for n in (1, 2, 3)]
        if draw.random() < 0.2:
            nothing = torch.zeros(0, dtype=draw.choice((dtype, F32)), device="meta")
            parts.insert(draw.randint(0, 3), nothing)
        return (parts, axis), {}
    if last in ("relu", "silu", "hardswish", "hardsigmoid") and "functional" in name:
        return (x, draw.random() < 0.3), {}
    return (x,), {}


def of_sums(
    last: str, draw: random.Random, sizes: tuple[int, ...], axis: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return random arguments of a sum into places."""
    x = tensor(draw, sizes, draw.choice((F32, F32, F16)))
    is_axis = -len(sizes) <= axis < len(sizes)
    added = list(sizes)
    added[axis if is_axis else 0] = draw.choice((1, 2, 5))
    dtype = x.dtype if draw.random() < 0.9 else F32
    kind = draw.choice((I64, I64, I64, torch.int32))
    if last == "index_add":
        places = tensor(draw, (added[axis if is_axis else 0] + (draw.random() < 0.1),), kind)
        named = {"alpha": draw.choice((2, 0.5))} if draw.random() < 0.3 else {}
        return (x, axis, places, tensor(draw, tuple(added), dtype)), named
    fewer = tuple(draw.choice((size, size, max(1, size - 1), size + 1)) for size in added)
    return (x, axis, tensor(draw, fewer, kind), tensor(draw, tuple(added), dtype)), {}


def other_shape(draw: random.Random, sizes: tuple[int, ...]) -> list[int]:
    """Return another shape of as many elements, now and then one of more."""
    wanted = list(sizes)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(wanted))
        factor = draw.choice((1, 2, 3))
        if wanted[at] % factor == 0 and draw.random() < 0.6:
            wanted[at : at + 1] = [wanted[at] // factor, factor]
        elif at:
            wanted[at - 1 : at + 1] = [wanted[at - 1] * wanted[at]]
    return wanted if draw.random() < 0.95 else [*wanted, 2]


def index(draw: random.Random, sizes: tuple[int, ...]) -> Any:
    parts: list[Any] = []
    for size in sizes[: draw.randint(1, len(sizes))]:
        first = draw.randint(-size - 1, size)
        parts.append(
            draw.choice((0, first, slice(None), slice(first, None), slice(0, size, 2), None))
        )
    if draw.random() < 0.2:
        parts.append(Ellipsis)
    return parts[0] if len(parts) == 1 else tuple(parts)


def on_the_cpu(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    operator = lookup(name)
    if name in OF_THE_CPU:  # whose order of memory tensors without a device do not follow
        with FakeTensorMode():
            held = [on_the_cpu(each) for each in args]
            named = {name: on_the_cpu(each) for name, each in kwargs.items()}
            return resolve(operator)(*held, **named)
    if operator.kind == "method":
        return getattr(args[0], operator.last_name)(*args[1:], **kwargs)
    return resolve(operator)(*args, **kwargs)


def as_forms(value: Any, known: dict[int, Storage]) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(as_forms(each, known) for each in value)
    if not isinstance(value, torch.Tensor):
        return value
    memory = value.untyped_storage()
    storage = known.setdefault(memory._cdata, Storage(memory.nbytes()))
    return Form(
        tuple(value.shape), tuple(value.stride()), value.dtype, storage, value.storage_offset()
    )


@pytest.mark.parametrize("name", sorted(RULES))
def test_rules_agree_with_torch(name: str) -> None:
    draw = random.Random(name)  # noqa: S311 - not for secrets
    num_covered = 0
    for number in range(200):
        args, kwargs = arguments(name, draw)
        known: dict[int, Storage] = {}
        named = {key: as_forms(each, known) for key, each in kwargs.items()}
        found = apply_rule(name, as_forms(args, known), named)
        if found is NotImplemented:
            continue
        num_covered += 1
        truth = call(name, args, kwargs)
        ours = found if isinstance(found, tuple | list) else [found]
        theirs = truth if isinstance(truth, tuple | list) else [truth]
        assert len(ours) == len(theirs), number
        for mine, real in zip(ours, theirs, strict=True):
            if not isinstance(real, torch.Tensor):
                assert (type(mine), mine) == (type(real), real), (number, args)
                continue
            assert mine.shape == tuple(real.shape), (number, args)
            assert mine.dtype == real.dtype, (number, args)
            assert mine.is_contiguous == real.is_contiguous(), (number, args)
            assert mine.offset == real.storage_offset(), (number, args)
            strides = [
                (step, size_step)
                for size, step, size_step in zip(
                    real.shape, real.stride(), mine.strides, strict=True
                )
                if size != 1
            ]
            assert all(step == other for step, other in strides), (number, args)
            if name in OF_THE_CPU:
                continue
            shared = known.get(real.untyped_storage()._cdata)
            if shared is None:
                assert mine.storage not in known.values(), (number, args)
                assert mine.storage.num_bytes == real.untyped_storage().nbytes(), (number, args)
            else:
                assert mine.storage is shared, (number, args)
    assert num_covered >= 20, "the rule was hardly tried"


@pytest.mark.parametrize("name", sorted(RULES))
def test_no_operator_with_a_rule_trusts_its_operands(name: str) -> None:
    operator = lookup(name)
    assert operator.name == name, "rules are found by canonical names"
    assert is_walkable(operator) and is_checked(operator)
    assert not is_trusting(operator)
    assert not operator.is_state


def told(footprint: Footprint) -> tuple[Any, ...]:
    results = [
        None if each is None else [(value.dtype, value.shape) for value in each]
        for each in footprint.results
    ]
    return (
        footprint.input_bytes, footprint.peak_bytes, footprint.total_bytes, footprint.unchecked,
        footprint.unsettled, footprint.settled_bytes, results,
    )  # fmt: skip


def measured_without_fakes(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> Footprint:
    """Return what rules alone tell of a sample; a walk that makes a tensor fake fails."""
    with monkeypatch.context() as patched:
        patched.setattr(walk.Walk, "_enter_mode", lambda _: pytest.fail("it was entered"))
        return measure_footprint(sample, is_quick=True)


def small_samples() -> list[Sample]:
    filters = [("framework", "=", "torch"), ("num_ops", "<", 120)]
    rows = [
        row for part in load_dataset("graphnet", "all", filters=filters).values() for row in part
    ]
    return [Sample.from_row(row) for row in itertools.islice(rows, 0, None, 9)]


@pytest.mark.slow
def test_the_quick_walk_agrees_with_the_full_walk() -> None:
    samples = small_samples()
    assert len(samples) >= 15
    for sample in samples:
        assert told(measure_footprint(sample, is_quick=True)) == told(measure_footprint(sample))


def test_a_call_of_an_earlier_sample_is_not_made_again() -> None:
    sample = next(each for each in small_samples() if each.num_ops > 20)
    repeated_calls.forget_all()
    first = measure_footprint(sample, is_quick=True)
    assert told(measure_footprint(sample, is_quick=True)) == told(first)


def repeating(way: str) -> Sample:
    """Return a graph that repeats by a stored number, which was written to under another name."""
    number = Input("input", Value("int64", ()), data=(3).to_bytes(8, "little"))
    image = Input("input", Value("float32", (4,)), statistics=Statistics(0.0, 1.0))
    ops = {
        "told": (),
        "expanded": (
            Op("torch.Tensor.expand", (Ref(0), 1)),
            Op("operator.iadd", (Ref(2), 2**40)),
        ),
        "viewed": (
            Op("torch.Tensor.view", (Ref(0), 1)),
            Op("torch.Tensor.add_", (Ref(2), 2**40)),
        ),
    }[way]
    item = Op("torch.Tensor.item", (Ref(0),))
    place = 2 + len(ops)
    last = Op("torch.repeat_interleave", (Ref(1), Ref(place)))
    return Sample("example/repeat", "torch", "other", (number, image), (*ops, item, last),
                  Ref(place + 1))  # fmt: skip


def test_aliased_writes_invalidate_known_elements() -> None:
    sample = repeating("expanded")
    for is_quick in (True, False):
        assert measure_footprint(sample, is_quick=is_quick).unchecked
    with pytest.raises(UncheckedOperatorError):
        check_memory(sample)


def test_local_writes_keep_known_elements() -> None:
    for is_quick in (True, False):
        with pytest.raises(TimeLimitError, match="4,398,046,511,116 elements"):
            measure_footprint(repeating("viewed"), is_quick=is_quick)


def test_a_number_that_nothing_writes_to_is_known() -> None:
    quick = measure_footprint(repeating("told"), is_quick=True)
    assert not quick.unchecked
    assert quick.results[-1] == (Value("float32", (12,)),)


def test_a_stored_number_that_is_only_asked_for_needs_no_fake_tensors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sample = repeating("told")
    ops = (sample.ops[0], Op("torch.Tensor.view", (Ref(1), Ref(2), -1)))
    for number, dtype, rows in ((2, "int64", 2), (4.0, "float32", None), (True, "bool", None)):
        stored = np.array(number, dtype).tobytes()
        first = Input("input", Value(dtype, ()), data=stored)
        each = dataclasses.replace(
            sample, inputs=(first, sample.inputs[1]), ops=ops[: 1 + bool(rows)], outputs=None
        )
        full = measure_footprint(each)
        with monkeypatch.context() as patched:
            patched.setattr(walk.Walk, "_enter_mode", lambda _: pytest.fail("it was entered"))
            quick = measure_footprint(each, is_quick=True)
        assert told(quick) == told(full)
        if rows:
            assert quick.results[-1] == (Value("float32", (rows, 4 // rows)),)


def test_a_scalar_counts_its_memory_once_where_views_of_it_are_made() -> None:
    number = repeating("told").inputs[0]
    ops = (
        Op("torch.Tensor.view", (Ref(0), 1)),
        Op("operator.add", (Ref(0), Ref(0))),
        Op("torch.Tensor.item", (Ref(2),)),
        Op("torch.Tensor.item", (Ref(0),)),
    )
    sample = Sample("example/viewed", "torch", "other", (number,), ops, (Ref(1), Ref(2)))
    quick = measure_footprint(sample, is_quick=True)
    assert told(quick) == told(measure_footprint(sample))
    assert quick.total_bytes == 8


def test_an_operator_in_place_that_changes_a_shape_changes_it_for_all() -> None:
    image = Input("input", Value("float32", (4, 6)), statistics=Statistics(0.0, 1.0))
    ops = (
        Op("torch.nn.functional.relu", (Ref(0),)),
        Op("torch.Tensor.t_", (Ref(1),)),
        Op("torch.Tensor.contiguous", (Ref(1),)),
    )
    sample = Sample("example/turned", "torch", "other", (image,), ops, Ref(3))
    quick = measure_footprint(sample, is_quick=True)
    assert told(quick) == told(measure_footprint(sample))
    assert quick.results[-1] == (Value("float32", (6, 4)),)


def test_forms_and_fake_tensors_lie_in_the_same_memory() -> None:
    known: dict[int, Storage] = {}
    whole = Form((4, 6), None, F32)
    part = whole.with_view((4, 2), (6, 1), 3)
    with FakeTensorMode():
        fake = fake_of(part, known)
        assert fake_of(whole, known).untyped_storage()._cdata == fake.untyped_storage()._cdata
        assert (fake.stride(), fake.storage_offset()) == ((6, 1), 3)
        again = form_of(fake[0], known)
    assert again.storage is whole.storage
    assert (again.shape, again.offset) == ((2,), 3)


def test_tensors_that_no_memory_holds_have_no_form() -> None:
    with pytest.raises(UnfitError):
        Form((2**40, 2**40), None, F32)
    assert apply_rule("torch.Tensor.expand", (Form((1,), None, F32), 2**62), {}) is NotImplemented


def test_sizes_that_a_graph_computes_need_no_fake_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    image = Input("input", Value("float32", (4, 6)), statistics=Statistics(0.0, 1.0))
    ops = (
        Op("torch.ops.aten.sym_size.int", (Ref(0), 1)),
        Op("operator.floordiv", (Ref(1), 2)),
        Op("torch.sym_sum", (ListArg((Ref(2), Ref(2), -2)),)),
        Op("operator.ge", (Ref(3), 0)),
        Op("torch.ops.aten._assert_scalar.default", (Ref(4), "a size below 0")),
        Op("torch.topk", (Ref(0), Ref(3)), (("dim", -1),)),
        Op("operator.getitem", (Ref(6), 1)),
        Op("operator.mul", (Ref(2), Ref(3))),
        Op("torch.zeros", (ListArg((4, Ref(8))),)),
        Op("operator.eq", (Ref(9), Ref(9))),
        Op("torch.Tensor.masked_fill_", (Ref(9), Ref(10), 1.0)),
    )
    sample = Sample("example/sizes", "torch", "other", (image,), ops, (Ref(7), Ref(11)))
    full = measure_footprint(sample)
    quick = measured_without_fakes(sample, monkeypatch)
    assert told(quick) == told(full)
    assert quick.results[6] == (Value("int64", (4, 4)),)
    assert quick.results[-1] == (Value("float32", (4, 12)),)


RUN = """
import sys
from graphnet_datasets import Sample, make_inputs, materialize
from graphnet_datasets.sample import Input, Op, Value
from graphnet_datasets.sample.arguments import Ref
ops = (Op("torch.relu", (Ref(0),)), Op("torch.zeros", ((2, 3),)),
    Op("operator.add", (Ref(1), Ref(2))))
given = Input("input", Value("float32", (2, 3)))
sample = Sample("example/relu", "torch", "other", (given,), ops, (Ref(3),))
materialize(sample)(**make_inputs(sample))
print(sorted({"sympy", "torch._dynamo", "torch._inductor", "scipy", "datasets"} & set(sys.modules)))
"""


def test_a_graph_that_rules_cover_runs_without_the_compiler_of_torch() -> None:
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_view_whose_size_only_a_run_tells_takes_no_memory_of_its_own() -> None:
    inputs = (
        Input("input", Value("float32", (8, 4))),
        Input("input", Value("bool", (8,))),
    )
    ops = (
        Op("torch.relu", (Ref(0),)),
        Op("torch.Tensor.sum", (Ref(1),)),
        Op("torch.Tensor.item", (Ref(3),)),
        Op("operator.sub", (8, Ref(4))),
        Op("torch.Tensor.split", (Ref(2), ListArg((Ref(4), Ref(5))))),
        Op("operator.getitem", (Ref(6), 0)),
        Op("torch.relu", (Ref(0),)),
    )
    sample = Sample("example/split", "torch", "other", inputs, ops, (Ref(7), Ref(8)))
    quick, full = (measure_footprint(sample, is_quick=each) for each in (True, False))
    # What relu gives, twice, and the number of what is true: an int64.
    assert quick.total_bytes == full.total_bytes == 2 * 8 * 4 * 4 + 8
    assert told(quick) == told(full)


def test_results_of_known_elements_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks of language models: `(1.0 - mask) * torch.tensor(lowest)`, and sizes out of tensors."""
    mask = Input("input", Value("int64", (2, 1, 1, 4)))
    number = Input("constant", Value("int64", ()), data=(3).to_bytes(8, "little"))
    ops = (
        Op("torch.Tensor.expand", (Ref(0), 2, 1, 4, 4)),
        Op("torch.Tensor.float", (Ref(2),)),
        Op("torch.tensor", (1.0,)),
        Op("operator.sub", (Ref(4), Ref(3))),
        Op("torch.Tensor.bool", (Ref(5),)),
        Op("torch.tensor", (-3.4e38,)),
        Op("torch.Tensor.masked_fill", (Ref(5), Ref(6), Ref(7))),
        Op("operator.mul", (Ref(1), 2)),
        Op("torch.Tensor.double", (Ref(9),)),
        Op("torch.Tensor.item", (Ref(9),)),
        Op("torch.zeros", (Ref(11), 4)),
        Op("operator.imul", (Ref(12), Ref(10))),
    )
    outputs = (Ref(8), Ref(10), Ref(13))
    sample = Sample("example/mask", "torch", "nlp", (mask, number), ops, outputs)
    full = measure_footprint(sample)
    quick = measured_without_fakes(sample, monkeypatch)
    assert told(quick) == told(full)
    assert quick.results[10] == (Value("float32", (6, 4)),)


def test_writes_invalidate_known_elements() -> None:
    number = Input("constant", Value("int64", ()), data=(3).to_bytes(8, "little"))
    ops = (
        Op("torch.Tensor.add_", (Ref(0), 1)),
        Op("torch.Tensor.item", (Ref(0),)),
        Op("torch.zeros", (Ref(2), 4)),
        Op("operator.mul", (Ref(0), 2)),
        Op("torch.Tensor.item", (Ref(4),)),
        Op("torch.zeros", (Ref(5), 4)),
    )
    sample = Sample("example/written", "torch", "nlp", (number,), ops, (Ref(3), Ref(6)))
    quick, full = (measure_footprint(sample, is_quick=each) for each in (True, False))
    assert told(quick) == told(full)
    assert quick.results[2] != (Value("float32", (3, 4)),)


def test_a_list_is_repeated_by_a_symbol_and_by_nothing_else_of_the_graph() -> None:
    symbols = (Symbol("s0", 4),)
    inputs = (Input("symbol", Value(None, ()), "s0"), Input("input", Value("float32", (3,))))
    ops = (Op("operator.mul", (ListArg((None,)), Ref(0))), Op("torch.relu", (Ref(1),)))
    sample = Sample("example/nones", "torch", "nlp", inputs, ops, (Ref(3),), symbols=symbols)
    module = materialize(sample)
    (found,) = module(4, torch.ones(3))
    assert found.tolist() == [1.0, 1.0, 1.0]
    many = dataclasses.replace(sample, symbols=(Symbol("s0", 10**9),))
    with pytest.raises(MemoryLimitError, match="100000 items"):
        materialize(many)
    counted = dataclasses.replace(
        sample,
        ops=(
            Op("torch.Tensor.sum", (Ref(1),)),
            Op("torch.Tensor.item", (Ref(2),)),
            Op("operator.mul", (ListArg((None,)), Ref(3))),
        ),
        outputs=(Ref(2),),
    )
    with pytest.raises(MemoryLimitError, match="known only at run time"):
        materialize(counted)
