"""Graphs over symbols beside captures of the same models at other sizes: equal bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from graphnet_datasets import Sample, extract, make_inputs, materialize
from graphnet_datasets.transforms import reify, symbolise


class Encoder(nn.Module):
    """A transformer as most are written: sizes asked of tensors, a table of positions, a mask."""

    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.tokens = nn.Embedding(50, 24)
        self.positions = nn.Embedding(64, 24)
        self.register_buffer("ids", torch.arange(64)[None])
        self.mixed = nn.Linear(24, 72)
        self.out = nn.Linear(24, 50)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        batch, length = tokens.shape
        ids: torch.Tensor = self.get_buffer("ids")
        x = self.tokens(tokens) + self.positions(ids[:, :length])
        query, key, value = (
            each.view(batch, length, 4, 6).transpose(1, 2) for each in self.mixed(x).chunk(3, -1)
        )
        scores = query @ key.transpose(-1, -2)
        if self.causal:
            allowed = torch.ones(length, length, dtype=torch.bool).tril()
            scores = scores.masked_fill(~allowed[None, None], -1e9)
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, length, 24)
        return self.out(x + mixed)


class ClassToken(nn.Module):
    """Patches with a token in front, which is repeated for each image, and no positions."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 8, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.norm = nn.LayerNorm(16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        x = self.norm(x)
        return self.attention(x, x, x, need_weights=False)[0][:, 0]


class Pyramid(nn.Module):
    """Down, up to the size of before, and pooled windows of a fixed size at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, 2, 1)
        self.norm = nn.BatchNorm2d(8)
        self.up = nn.Conv2d(8, 8, 3, 1, 1)
        self.last = nn.Linear(8 * 9, 5)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        low = functional.relu(self.norm(self.down(image)))
        high = functional.interpolate(self.up(low), size=image.shape[2:], mode="nearest")
        pooled = functional.adaptive_avg_pool2d(low, (3, 3))
        return high, self.last(pooled.view(pooled.size(0), -1))


class Windows(nn.Module):
    """Attention inside of windows of four by four: an image is cut into them and put together."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(3, 3)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        batch, height, width, channels = image.shape
        cut = image.view(batch, height // 4, 4, width // 4, 4, channels)
        windows = cut.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, channels)
        mixed = self.mix(windows) + windows.mean(1, keepdim=True)
        back = mixed.view(batch, height // 4, width // 4, 4, 4, channels)
        return back.permute(0, 1, 3, 2, 4, 5).reshape(batch, height, width, channels)


class Recurrent(nn.Module):
    """States that are made for the batch, and the last step of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(6, 8, batch_first=True)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(1, steps.shape[0], 8)
        every, _ = self.cell(steps, state)
        return every[:, -1] + every.sum(1) / steps.shape[1]


def tokens(batch: int, sequence: int) -> torch.Tensor:
    return torch.arange(batch * sequence).reshape(batch, sequence) % 50


def image(batch: int, height: int, width: int) -> torch.Tensor:
    return torch.randn(batch, 3, height, width, generator=torch.Generator().manual_seed(0))


def pixels(batch: int, height: int, width: int) -> torch.Tensor:
    return torch.randn(batch, height, width, 3, generator=torch.Generator().manual_seed(0))


def series(batch: int, sequence: int) -> torch.Tensor:
    return torch.randn(batch, sequence, 6, generator=torch.Generator().manual_seed(0))


CASES: list[tuple[Callable[[], nn.Module], Callable[..., torch.Tensor], Any, list[Any]]] = [
    (Encoder, tokens, (2, 12), [(1, 12), (5, 7), (3, 64)]),
    (Encoder, tokens, (1, 24), [(1, 12), (5, 9), (3, 64)]),
    (lambda: Encoder(causal=True), tokens, (2, 10), [(1, 10), (5, 7), (3, 33)]),
    (ClassToken, image, (1, 32, 32), [(2, 32, 32), (1, 48, 24), (3, 64, 40)]),
    (ClassToken, image, (2, 32, 48), [(1, 32, 32), (4, 48, 24), (3, 61, 43)]),
    (Pyramid, image, (2, 17, 24), [(1, 17, 24), (2, 33, 9), (5, 20, 31)]),
    (Windows, pixels, (2, 8, 12), [(1, 8, 12), (3, 16, 20), (2, 24, 4)]),
    (Recurrent, series, (4, 9), [(1, 9), (2, 5), (7, 40)]),
]
"""Models, what they take at given sizes, the sizes of the capture, and others."""


def capture(module: nn.Module, taken: torch.Tensor, name: str) -> Sample:
    torch._dynamo.reset()
    captured = extract(name=f"test/{name}")(module)
    with torch.no_grad():
        captured(taken)
    (sample,) = captured.samples
    return sample


def run(sample: Sample, held: dict[str, Any], taken: torch.Tensor) -> Any:
    """Run a graph on weights by the names that they have in the module."""
    made = make_inputs(sample)
    for name, each in zip(sample.input_names, sample.inputs, strict=True):
        if each.role == "input":
            made[name] = taken
        elif each.role in ("parameter", "buffer"):
            made[name] = held.setdefault(each.source_name, made[name])
    with torch.no_grad():
        return materialize(sample)(**made)


@pytest.mark.parametrize("case", range(len(CASES)))
def test_other_sizes_give_the_bits_of_a_capture_at_them(case: int) -> None:
    build, take, hints, others = CASES[case]
    torch.manual_seed(0)
    module = build().eval()
    found = symbolise(capture(module, take(*hints), "whole"))
    names = [symbol.name for symbol in found.sample.symbols]
    assert names[0] == "batch" and len(names) == len(hints), found.refused
    held: dict[str, Any] = {}
    for sizes in others:
        expected = run(capture(module, take(*sizes), "other"), held, take(*sizes))
        same = reify(found.sample, dict(zip(names, sizes, strict=True)))
        got = run(same, held, take(*sizes))
        for one, other in zip(got, expected, strict=True):
            assert one.shape == other.shape and torch.equal(one, other)


def transformer(name: str) -> nn.Module:
    """Return a small model of transformers with random weights that gives its first output."""
    transformers = pytest.importorskip("transformers")
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    own = {
        "Bert": {**small, "intermediate_size": 48},
        "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4},
        "T5Encoder": {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4},
        "Llama": {**small, "intermediate_size": 48, "num_key_value_heads": 2},
    }[name]
    config_name = f"{name.removesuffix('Encoder')}Config"
    config = getattr(transformers, config_name)(vocab_size=50, **own, use_cache=False)

    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = getattr(transformers, f"{name}Model")(config)

        def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor]:
            return (self.model(input_ids=tokens)[0],)

    return First()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Bert", "GPT2", "T5Encoder", "Llama"])
def test_models_of_transformers_give_the_bits_of_their_captures(name: str) -> None:
    torch.manual_seed(0)
    module = transformer(name).eval()
    found = symbolise(capture(module, tokens(2, 12), "whole"))
    assert [symbol.name for symbol in found.sample.symbols] == ["batch", "sequence"]
    held: dict[str, Any] = {}
    for batch, sequence in ((1, 12), (3, 7), (2, 40)):
        taken = tokens(batch, sequence)
        (expected,) = run(capture(module, taken, "other"), held, taken)
        (got,) = run(reify(found.sample, {"batch": batch, "sequence": sequence}), held, taken)
        assert torch.equal(got, expected)
