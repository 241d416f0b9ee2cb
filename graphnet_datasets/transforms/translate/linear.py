"""Rules for matrix products, attention and Fourier transforms."""
# ruff: noqa: ARG001 - the parameters of a rule are those of its operator

from __future__ import annotations

from string import ascii_lowercase
from typing import Any

from .elementwise import choose
from .handles import RefusedError, Tensor
from .layout import sizes_of, split_into
from .networks import layer_norm
from .registry import rule
from .writer import Writer

_MASKED = float("-inf")


@rule("linear")
def linear(w: Writer, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if weight.ndim == 1:
        product = w.matmul(input, weight)
    else:
        product = w.matmul(input, weight, is_transposed=True)
        if input.ndim == 1:
            product = Tensor(product.ref, product.dtype, (weight.shape[0],))
    return product if bias is None else w.binary("add", product, bias)


@rule("matmul", "mm", "bmm", "mv", "dot", "operator.matmul")
def matmul(w: Writer, input: Tensor, other: Tensor) -> Tensor:
    return w.matmul(input, other)


@rule("outer")
def outer(w: Writer, input: Tensor, vec2: Tensor) -> Tensor:
    return w.binary("multiply", w.reshape(input, (*input.shape, 1)), vec2)


@rule("addmm", "baddbmm")
def addmm(
    w: Writer, input: Tensor, batch1: Any = None, batch2: Any = None, *, beta: Any = 1,
    alpha: Any = 1, mat1: Any = None, mat2: Any = None,
) -> Tensor:  # fmt: skip
    left, right = (mat1 if batch1 is None else batch1), (mat2 if batch2 is None else batch2)
    product = w.matmul(left, right)
    if alpha != 1:
        product = w.scale(product, alpha)
    if beta == 0:
        return product
    return w.binary("add", input if beta == 1 else w.scale(input, beta), product)


@rule("einsum")
def einsum(w: Writer, equation: str, *operands: Any) -> Tensor:
    tensors = sizes_of(operands)
    equation = equation.replace(" ", "")
    if (
        "->" not in equation
    ):  # paddle's kernel needs an explicit result; NumPy's rule for implicit results
        letters = sorted(set(equation) - set(",."))
        result = "".join(letter for letter in letters if equation.count(letter) == 1)
        equation += "->" + "..." * ("..." in equation) + result
    equation = _in_small_letters(equation, [tensor.ndim for tensor in tensors])
    return w.emit_first("einsum", tensors, equation, dtype=w.dtype, shape=w.shape, number=3)


def _in_small_letters(equation: str, ranks: list[int]) -> str:
    """Rewrite an equation for paddle's kernel: lowercase letters, one for each axis.

    >>> _in_small_letters("...Ab,bc->...Ac", [4, 2])
    'deab,bc->deac'
    """
    left, _, right = equation.partition("->")
    terms = left.split(",")
    counts = [
        rank - len(term.replace("...", ""))
        for term, rank in zip(terms, ranks, strict=False)
        if "..." in term
    ]
    free = [letter for letter in ascii_lowercase if letter not in equation]
    capitals = {letter for letter in equation if letter.isupper()}
    most = max(counts, default=0)
    if len(terms) != len(ranks) or min(counts, default=0) < 0 or len(free) < len(capitals) + most:
        raise RefusedError("Paddle's kernel does not support the equation.")
    names = {letter: free.pop(0) for letter in sorted(capitals)}
    more = "".join(free[:most])
    remaining = iter(counts)
    spelled = [
        term.replace("...", more[most - next(remaining) :]) if "..." in term else term
        for term in terms
    ]
    whole = ",".join(spelled) + "->" + right.replace("...", more)
    return "".join(names.get(letter, letter) for letter in whole)


def attend(
    w: Writer, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None, scale: Any,
    is_causal: bool,
) -> Tensor:  # fmt: skip
    """Return attention over the last two dimensions; a boolean mask is true at visible
    positions.
    """
    factor = query.static(-1) ** -0.5 if scale is None else scale
    scores = w.matmul(w.scale(query, factor), key, is_transposed=True)
    if is_causal:
        shape = (query.static(-2), key.static(-2))
        seen = w.full(shape, True, "bool")
        mask = w.emit("tril", seen, 0, dtype="bool", shape=shape)
    if mask is not None and mask.dtype == "bool":
        scores = choose(w, mask, scores, w.full((), _MASKED, scores.dtype))
    elif mask is not None:
        scores = w.binary("add", scores, w.cast(mask, scores.dtype))
    weights = w.emit("softmax", scores, scores.ndim - 1, dtype=scores.dtype, shape=scores.shape)
    return w.matmul(weights, value)


@rule("scaled_dot_product_attention")
def scaled_dot_product_attention(
    w: Writer,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Tensor:
    if dropout_p:
        raise RefusedError("It draws random numbers.")
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        times = query.static(-3) // key.static(-3)
        key, value = (_repeated(w, tensor, times) for tensor in (key, value))
    return attend(w, query, key, value, mask=attn_mask, scale=scale, is_causal=is_causal)


def _repeated(w: Writer, x: Tensor, times: int) -> Tensor:
    axis = x.ndim - 3
    shape = (*x.shape[:axis], x.static(axis) * times, *x.shape[axis + 1 :])
    return w.emit("repeat_interleave", x, times, axis, -1, dtype=x.dtype, shape=shape)


def _heads(w: Writer, x: Tensor, heads: int) -> Tensor:
    """Reshape (batch, tokens, width) to (batch, heads, tokens, head size)."""
    width = x.static(2)
    return w.swap(w.reshape(x, (*x.shape[:2], heads, width // heads)), 1, 2)


def _joined(w: Writer, x: Tensor) -> Tensor:
    batch, heads, tokens, size = x.shape
    return w.reshape(w.swap(x, 1, 2), (batch, tokens, int(heads) * int(size)))


def _many_heads(
    w: Writer, sources: tuple[Tensor, ...], heads: int, weight: Tensor, bias: Tensor | None,
    mask: Tensor | None,
) -> Tensor:  # fmt: skip
    """Return multi-head attention before the output projection.

    The sources of queries, keys and values have shape (batch, tokens, width), like the result.
    """
    width = weight.static(1)
    matrices = split_into(w, weight, [width] * 3, 0)
    shifts = [None] * 3 if bias is None else split_into(w, bias, [width] * 3, 0)
    parts = [
        _heads(w, linear(w, x, matrix, shift), heads)
        for x, matrix, shift in zip(sources, matrices, shifts, strict=True)
    ]
    mixed = attend(w, *parts, mask=mask, scale=None, is_causal=False)
    return _joined(w, mixed)


@rule("multi_head_attention_forward")
def multi_head_attention(
    w: Writer,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    **_: Any,
) -> tuple[Tensor, None]:
    """Write attention on (tokens, batch, width) without returning its weights."""
    if (
        need_weights or in_proj_weight is None or bias_k is not None or add_zero_attn
        or key_padding_mask is not None or use_separate_proj_weight or (training and dropout_p)
        or query.ndim != 3
    ):  # fmt: skip
        raise RefusedError("Only attention with a single input projection is supported.")
    mask = attn_mask
    if mask is not None and mask.dtype == "bool":  # true means masked here
        mask = w.emit("logical_not", mask, dtype="bool", shape=mask.shape)
    if mask is not None and mask.ndim == 3:
        mask = w.reshape(mask, (mask.static(0) // num_heads, num_heads, *mask.shape[1:]))
    turned = tuple(w.swap(tensor, 0, 1) for tensor in (query, key, value))
    mixed = _many_heads(w, turned, num_heads, in_proj_weight, in_proj_bias, mask)
    return w.swap(linear(w, mixed, out_proj_weight, out_proj_bias), 0, 1), None


@rule("torch._transformer_encoder_layer_fwd")
def transformer_encoder_layer(
    w: Writer,
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Any = None,
    mask_type: Any = None,
) -> Tensor:
    if mask is not None:
        raise RefusedError("A mask is not supported.")

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return layer_norm(w, x, [embed_dim], weight, bias, eps)

    x = norm(src, norm_weight_1, norm_bias_1) if norm_first else src
    mixed = _many_heads(w, (x, x, x), num_heads, qkv_weight, qkv_bias, None)
    x = w.binary("add", src, linear(w, mixed, proj_weight, proj_bias))
    x = x if norm_first else norm(x, norm_weight_1, norm_bias_1)
    inner = norm(x, norm_weight_2, norm_bias_2) if norm_first else x
    inner = linear(w, inner, ffn_weight_1, ffn_bias_1)
    name, extra = ("gelu", (False,)) if use_gelu else ("relu", ())
    inner = w.emit(name, inner, *extra, dtype=inner.dtype, shape=inner.shape)
    x = w.binary("add", x, linear(w, inner, ffn_weight_2, ffn_bias_2))
    return x if norm_first else norm(x, norm_weight_2, norm_bias_2)


@rule("torch.fft.rfft", "torch.fft.irfft", "torch.fft.rfft2", "torch.fft.irfft2", "torch.fft.rfftn",
      "torch.fft.irfftn", "torch.fft.fft", "torch.fft.ifft", "torch.fft.fft2", "torch.fft.ifft2",
      "torch.fft.fftn", "torch.fft.ifftn")  # fmt: skip
def fourier(
    w: Writer, input: Tensor, n: Any = None, dim: Any = None, norm: Any = None, *, s: Any = None
) -> Tensor:
    name = w.target.rpartition(".")[2]
    is_inverse, size = "ifft" in name or "irfft" in name, s if n is None else n
    if dim is None:
        dim = {"2": (-2, -1), "n": tuple(range(input.ndim))}.get(name[-1], -1)
    axes = [input.axis(axis) for axis in ((dim,) if isinstance(dim, int) else dim)]
    is_to_real, is_from_real = name.startswith("irfft"), name.startswith("rfft")
    sizes = [input.static(axis) for axis in axes]
    if is_to_real:
        sizes[-1] = 2 * (sizes[-1] - 1)
    if size is not None:
        sizes = [size] if isinstance(size, int) else list(size)
    for axis, length in zip(axes, sizes, strict=True):
        is_half = is_to_real and axis == axes[-1]
        input = _of_length(w, input, axis, length // 2 + 1 if is_half else length)
    way = norm or "backward"
    if is_from_real:
        return w.emit("fft_r2c", input, axes, way, True, True, dtype=w.dtype, shape=w.shape)
    x = w.cast(input, {"float64": "complex128"}.get(input.dtype, "complex64"))
    if input.dtype.startswith("complex"):
        x = input
    if is_to_real:
        return w.emit("fft_c2r", x, axes, way, False, sizes[-1], dtype=w.dtype, shape=w.shape)
    return w.emit("fft_c2c", x, axes, way, not is_inverse, dtype=w.dtype, shape=w.shape)


def _of_length(w: Writer, x: Tensor, axis: int, length: int) -> Tensor:
    """Cut a tensor, or pad it with zeros, to a length along a dimension."""
    size = x.static(axis)
    shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
    if length < size:
        return w.emit("slice", x, [axis], [0], [length], [1], [], dtype=x.dtype, shape=shape)
    if length == size:
        return x
    missing = w.full((*x.shape[:axis], length - size, *x.shape[axis + 1 :]), 0.0, x.dtype)
    return w.emit("concat", [x, missing], axis, dtype=x.dtype, shape=shape)
