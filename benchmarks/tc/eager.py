"""Kernels of the paper in torch eager."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F  # noqa: N812 (torch's own name for it)

Tensors = Sequence[torch.Tensor]


def convolution(i: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> Tensors:
    n, g, c, height, width = i.shape
    flat = i.reshape(n, g * c, height, width)
    out = F.conv2d(flat, w.reshape(-1, *w.shape[2:]), b.reshape(-1), groups=g)
    return (out.reshape(n, g, -1, *out.shape[2:]),)


def mlp3(i: torch.Tensor, *weights: torch.Tensor) -> Tensors:
    results, value = [], i
    for weight, bias in zip(weights[::2], weights[1::2], strict=True):
        value = torch.relu(F.linear(value, weight, bias))
        results.append(value)
    return results


def bags(l1: torch.Tensor, i1: torch.Tensor, *rest: torch.Tensor) -> Tensors:
    first = F.embedding_bag(i1, l1, mode="sum")
    return (first, *bags(*rest)) if rest else (first,)


def production(*inputs: torch.Tensor) -> Tensors:
    i3, w, i4, w1, b1, *layers = inputs[4:]
    first = torch.relu(torch.addmm(b1, i4, w1))
    return (*bags(*inputs[:4]), F.linear(i3, w), first, *mlp3(first, *layers))


def kronecker3(w0: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor, x: torch.Tensor) -> Tensors:
    xw2 = x @ w2.T
    xw1 = torch.matmul(w1, xw2)
    m, n0, d1, d2 = xw1.shape
    return torch.matmul(w0, xw1.reshape(m, n0, d1 * d2)).reshape(m, -1, d1, d2), xw1, xw2


def moments(i: torch.Tensor) -> Tensors:
    total, total2 = i.sum(1), (i * i).sum(1)
    mean = total / i.shape[1]
    return total, mean, total2, total2 / i.shape[1] - mean * mean


def group_norm(i: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor) -> Tensors:
    n, g, d, height, width = i.shape
    flat = i.reshape(n, g * d, height, width)
    return (F.group_norm(flat, g, gamma.reshape(-1), beta.reshape(-1)).reshape(i.shape),)


def wavenet(*inputs: torch.Tensor) -> Tensors:
    data, fw, fb, gw, gb, rw, rb, sw, sb, dilation = inputs
    distance = dilation.shape[0]
    padded = F.pad(data, (distance, 0))
    filtered = F.conv1d(padded, fw, fb, dilation=distance)
    gate = F.conv1d(padded, gw, gb, dilation=distance)
    z = torch.tanh(filtered) * torch.sigmoid(gate)
    return filtered, gate, z, data + F.conv1d(z, rw[..., None], rb), F.conv1d(z, sw[..., None], sb)


EAGER: dict[str, Callable[..., Tensors]] = {
    "tmm": lambda a, b: (a @ b.T,),
    "tbmm": lambda x, y: (torch.bmm(x, y),),
    "gconv": convolution,
    "1LUT": bags,
    "2LUT": bags,
    "C3": lambda i, w: (F.linear(i, w),),
    "MLP1": lambda i, w, b: (torch.relu(torch.addmm(b, i, w)),),
    "MLP3": mlp3,
    "production": production,
    "Kronecker3": kronecker3,
    "moments": moments,
    "group norm": group_norm,
    "WaveNet": wavenet,
    "layer norm": lambda i, g, b: (F.layer_norm(i, (i.shape[1],), g, b),),
}
