"""Models of two modalities at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from .vision import ResNet


def _encoder(width: int, heads: int, depth: int) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(
        width, heads, 4 * width, activation="gelu", batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)


class ImageTextContrast(nn.Module):
    """Two towers and the similarity of their normalised ends (Radford et al. 2021)."""

    def __init__(
        self,
        layers: Sequence[int] = (2, 2, 2, 2),
        base_width: int = 64,
        vocabulary: int = 30_000,
        width: int = 256,
        heads: int = 4,
        depth: int = 6,
    ) -> None:
        super().__init__()
        self.image = ResNet(layers, False, base_width, num_classes=width)
        self.text = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.randn(1, 77, width) * 0.01)
        self.body = _encoder(width, heads, depth)
        self.scale = nn.Parameter(torch.tensor(2.66))

    def forward(self, pixels: Tensor, ids: Tensor) -> Tensor:
        images = F.normalize(self.image(pixels), dim=-1)
        texts = self.body(self.text(ids) + self.position[:, : ids.shape[1]])[:, -1]
        return self.scale.exp() * images @ F.normalize(texts, dim=-1).t()


class QuestionAnswerer(nn.Module):
    """Image regions and a question, joined by co-attention (Yu et al. 2019)."""

    def __init__(
        self,
        regions: int = 2048,
        vocabulary: int = 15_000,
        width: int = 512,
        heads: int = 8,
        depth: int = 6,
        answers: int = 3129,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 300)
        self.words = nn.LSTM(300, width, batch_first=True)
        self.regions = nn.Linear(regions, width)
        self.question = _encoder(width, heads, depth)
        layer = nn.TransformerDecoderLayer(width, heads, 4 * width, batch_first=True)
        self.image = nn.TransformerDecoder(layer, depth)
        self.word_score, self.region_score = nn.Linear(width, 1), nn.Linear(width, 1)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, answers))

    def forward(self, regions: Tensor, ids: Tensor) -> Tensor:
        question = self.question(self.words(self.embedding(ids))[0])
        image = self.image(self.regions(regions), question)
        words = (self.word_score(question).softmax(1) * question).sum(1)
        places = (self.region_score(image).softmax(1) * image).sum(1)
        return self.head(words + places).sigmoid()


class Captioner(nn.Module):
    """An LSTM that looks at a feature map at each word (Xu et al. 2015)."""

    def __init__(
        self,
        layers: Sequence[int] = (2, 2, 2, 2),
        base_width: int = 32,
        vocabulary: int = 5_000,
        width: int = 256,
    ) -> None:
        super().__init__()
        self.image = ResNet(layers, False, base_width)
        places = base_width * 8
        self.embedding = nn.Embedding(vocabulary, width)
        self.cell = nn.LSTMCell(width + places, width)
        self.place, self.state = nn.Linear(places, width), nn.Linear(width, width)
        self.score, self.head = nn.Linear(width, 1), nn.Linear(width, vocabulary)

    def forward(self, pixels: Tensor, ids: Tensor) -> Tensor:
        places = self.image.features(pixels)[-1].flatten(2).transpose(1, 2)
        hidden = cell = self.place(places.mean(1))
        words, outputs = self.embedding(ids), []
        for step in range(ids.shape[1]):
            scores = self.score(torch.tanh(self.place(places) + self.state(hidden)[:, None]))
            context = (scores.softmax(1) * places).sum(1)
            hidden, cell = self.cell(torch.cat([words[:, step], context], -1), (hidden, cell))
            outputs.append(self.head(hidden))
        return torch.stack(outputs, 1)


class AudioVisualFusion(nn.Module):
    """Bottleneck tokens through which a video and a sound tower see each other."""

    def __init__(
        self, width: int = 192, heads: int = 3, depth: int = 4, tokens: int = 4, classes: int = 309
    ) -> None:
        super().__init__()
        self.sound = nn.Conv2d(1, width, 16, 16)
        self.video = nn.Conv3d(3, width, (2, 16, 16), (2, 16, 16))
        self.shared = nn.Parameter(torch.randn(1, tokens, width) * 0.02)
        self.sound_layers = nn.ModuleList(_encoder(width, heads, 1) for _ in range(depth))
        self.video_layers = nn.ModuleList(_encoder(width, heads, 1) for _ in range(depth))
        self.head = nn.Linear(2 * width, classes)

    def forward(self, spectrogram: Tensor, frames: Tensor) -> Tensor:
        sound = self.sound(spectrogram).flatten(2).transpose(1, 2)
        video = self.video(frames).flatten(2).transpose(1, 2)
        shared = self.shared.expand(sound.shape[0], -1, -1)
        count = shared.shape[1]
        for sound_layer, video_layer in zip(self.sound_layers, self.video_layers, strict=True):
            sound_out = sound_layer(torch.cat([shared, sound], 1))
            video_out = video_layer(torch.cat([shared, video], 1))
            sound, video = sound_out[:, count:], video_out[:, count:]
            shared = 0.5 * (sound_out[:, :count] + video_out[:, :count])
        return self.head(torch.cat([sound.mean(1), video.mean(1)], -1))


class Resampler(nn.Module):
    """Latent queries that read any number of visual tokens (Alayrac et al. 2022), gated."""

    def __init__(
        self,
        visual: int = 1024,
        width: int = 512,
        heads: int = 8,
        depth: int = 3,
        queries: int = 64,
        vocabulary: int = 32_000,
    ) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(1, queries, width) * 0.02)
        self.visual = nn.Linear(visual, width)
        self.read = nn.ModuleList(
            nn.MultiheadAttention(width, heads, batch_first=True) for _ in range(depth)
        )
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                          nn.Linear(4 * width, width))
            for _ in range(depth)
        )  # fmt: skip
        self.embedding = nn.Embedding(vocabulary, width)
        self.cross = nn.MultiheadAttention(width, heads, batch_first=True)
        self.gate = nn.Parameter(torch.tensor(0.5))
        self.body, self.head = _encoder(width, heads, 2), nn.Linear(width, vocabulary)

    def forward(self, visual: Tensor, ids: Tensor) -> Tensor:
        memory = self.visual(visual)
        queries = self.queries.expand(memory.shape[0], -1, -1)
        for read, mlp in zip(self.read, self.mlp, strict=True):
            both = torch.cat([memory, queries], 1)
            queries = queries + read(queries, both, both, need_weights=False)[0]
            queries = queries + mlp(queries)
        x = self.embedding(ids)
        x = x + torch.tanh(self.gate) * self.cross(x, queries, queries, need_weights=False)[0]
        return self.head(self.body(x))


ARCHITECTURES: Mapping[str, Callable[..., nn.Module]] = {
    "image_text_contrast": ImageTextContrast,
    "question_answerer": QuestionAnswerer,
    "captioner": Captioner,
    "audio_visual_fusion": AudioVisualFusion,
    "resampler": Resampler,
}
