"""Text models in plain torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class RecurrentLanguageModel(nn.Module):
    """An LSTM or GRU language model with tied embeddings (Zaremba et al. 2014)."""

    def __init__(
        self, vocabulary: int = 10_000, width: int = 650, depth: int = 2, kind: str = "lstm"
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        cell = {"lstm": nn.LSTM, "gru": nn.GRU}[kind]
        self.body = cell(width, width, depth, batch_first=True, dropout=0.5)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        hidden, _ = self.body(self.embedding(ids))
        return self.head(hidden)


class SequenceTagger(nn.Module):
    """A bidirectional LSTM with scores per tag (Huang et al. 2015)."""

    def __init__(
        self, vocabulary: int = 20_000, width: int = 100, hidden: int = 200, tags: int = 17
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.body = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, tags)
        self.transitions = nn.Parameter(torch.randn(tags, tags) * 0.1)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.head(self.body(self.embedding(ids))[0])
        total = scores[:, 0]
        for step in range(1, scores.shape[1]):
            total = torch.logsumexp(total[:, :, None] + self.transitions, 1) + scores[:, step]
        return scores, torch.logsumexp(total, -1)


class TextConvolutions(nn.Module):
    """Kim 2014."""

    def __init__(
        self,
        vocabulary: int = 20_000,
        width: int = 300,
        filters: int = 100,
        kernels: Sequence[int] = (3, 4, 5),
        classes: int = 2,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, filters, size) for size in kernels)
        self.head = nn.Linear(filters * len(kernels), classes)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids).transpose(1, 2)
        pooled = [F.relu(convolution(x)).amax(-1) for convolution in self.convolutions]
        return self.head(F.dropout(torch.cat(pooled, 1), 0.5, self.training))


class AttentionTranslator(nn.Module):
    """A GRU encoder and a decoder that attends to it at each step (Bahdanau et al. 2015)."""

    def __init__(self, vocabulary: int = 8_000, width: int = 256) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
        self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.cell = nn.GRUCell(3 * width, width)
        self.start = nn.Linear(2 * width, width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(2 * width, width)
        self.score, self.head = nn.Linear(width, 1, bias=False), nn.Linear(3 * width, vocabulary)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, _ = self.encoder(self.source(source))
        keys, state = self.key(memory), torch.tanh(self.start(memory.mean(1)))
        outputs = []
        for step in range(target.shape[1]):
            scores = self.score(torch.tanh(self.query(state)[:, None] + keys)).squeeze(-1)
            context = torch.bmm(scores.softmax(-1)[:, None], memory).squeeze(1)
            state = self.cell(torch.cat([self.target(target[:, step]), context], -1), state)
            outputs.append(self.head(torch.cat([state, context], -1)))
        return torch.stack(outputs, 1)


class TransformerTranslator(nn.Module):
    """The encoder and decoder of Vaswani et al. 2017, from torch's own layers."""

    def __init__(
        self, vocabulary: int = 32_000, width: int = 512, heads: int = 8, depth: int = 6
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.randn(1, 512, width) * 0.02)
        self.body = nn.Transformer(width, heads, depth, depth, 4 * width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        length = target.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        hidden = self.body(
            self.embedding(source) + self.position[:, : source.shape[1]],
            self.embedding(target) + self.position[:, :length],
            tgt_mask=mask,
            tgt_is_causal=True,
        )
        return self.head(hidden)


class ExpertLayer(nn.Module):
    """A mixture of experts in which every expert sees every token, weighted by the router."""

    def __init__(self, width: int, hidden: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.chosen, self.router = chosen, nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, hidden) * 0.02)
        self.down = nn.Parameter(torch.randn(experts, hidden, width) * 0.02)

    def forward(self, x: Tensor) -> Tensor:
        scores, chosen = self.router(x).softmax(-1).topk(self.chosen, -1)
        weights = torch.zeros_like(self.router(x)).scatter(-1, chosen, scores)
        hidden = F.silu(torch.einsum("btw,ewh->beth", x, self.up))
        outputs = torch.einsum("beth,ehw->betw", hidden, self.down)
        return torch.einsum("betw,bte->btw", outputs, weights)


class StateSpaceLayer(nn.Module):
    """A diagonal linear recurrence (S4D, Gu et al. 2022), applied as a long convolution."""

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        self.log_step = nn.Parameter(torch.rand(width) * 2 - 4)
        self.decay = nn.Parameter(torch.rand(width, states))
        self.frequency = nn.Parameter(torch.rand(width, states) * 3)
        self.mix = nn.Parameter(torch.randn(width, states, 2) * 0.5)
        self.skip, self.out = nn.Parameter(torch.randn(width)), nn.Linear(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        rate = torch.complex(-self.decay.exp(), self.frequency) * self.log_step.exp()[:, None]
        steps = torch.arange(length, device=x.device)
        weights = torch.view_as_complex(self.mix)
        kernel = 2 * torch.einsum("wn,wnl->wl", weights, (rate[..., None] * steps).exp()).real
        spectrum = torch.fft.rfft(x.transpose(1, 2), 2 * length) * torch.fft.rfft(
            kernel, 2 * length
        )
        y = torch.fft.irfft(spectrum, 2 * length)[..., :length].transpose(1, 2) + x * self.skip
        return F.glu(self.out(F.gelu(y)), -1)


class LanguageStack(nn.Module):
    """A language model whose mixing layers are state spaces or expert layers."""

    def __init__(
        self,
        vocabulary: int = 10_000,
        width: int = 256,
        depth: int = 4,
        kind: str = "state_space",
        hidden: int = 512,
        experts: int = 4,
        states: int = 32,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.layers = nn.ModuleList(
            StateSpaceLayer(width, states)
            if kind == "state_space"
            else ExpertLayer(width, hidden, experts, 2)
            for _ in range(depth)
        )
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x))
        return self.head(x)


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "recurrent_language_model": RecurrentLanguageModel,
    "sequence_tagger": SequenceTagger,
    "text_convolutions": TextConvolutions,
    "attention_translator": AttentionTranslator,
    "transformer_translator": TransformerTranslator,
    "language_stack": LanguageStack,
}
