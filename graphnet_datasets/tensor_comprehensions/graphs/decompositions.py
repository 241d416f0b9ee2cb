"""Decompositions that torch lacks, into operators with rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (torch's own name for it)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return torch's core decompositions and those of this module."""
    table: dict[Any, Callable[..., Any]] = dict(torch.export.default_decompositions())
    table[torch.ops.aten._transformer_encoder_layer_fwd.default] = encoder_layer
    return table


def encoder_layer(
    src: torch.Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: torch.Tensor,
    norm_bias_1: torch.Tensor,
    norm_weight_2: torch.Tensor,
    norm_bias_2: torch.Tensor,
    ffn_weight_1: torch.Tensor,
    ffn_bias_1: torch.Tensor,
    ffn_weight_2: torch.Tensor,
    ffn_bias_2: torch.Tensor,
    mask: torch.Tensor | None = None,
    mask_type: int | None = None,  # noqa: ARG001 (part of the signature)
) -> Any:
    """Decompose the fused encoder layer; with a mask it remains fused."""
    if mask is not None or src.dim() != 3:
        return NotImplemented
    batch, length, _ = src.shape
    size = embed_dim // num_heads

    def attend(x: torch.Tensor) -> torch.Tensor:
        parts = F.linear(x, qkv_weight, qkv_bias).reshape(batch, length, 3, num_heads, size)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax((q * size**-0.5) @ k.transpose(-2, -1), -1)
        joined = (weights @ v).transpose(1, 2).reshape(batch, length, embed_dim)
        return F.linear(joined, proj_weight, proj_bias)

    def feed(x: torch.Tensor) -> torch.Tensor:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        inner = F.gelu(inner) if use_gelu else torch.relu(inner)
        return F.linear(inner, ffn_weight_2, ffn_bias_2)

    def first(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attend(first(src))
        return x + feed(second(x))
    x = first(src + attend(src))
    return second(x + feed(x))
