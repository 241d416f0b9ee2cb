"""Steps of serving: a language model of transformers and its key-value cache, in one module.

The cache is in buffers without elements, so its size costs no memory. A step writes to it in place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.configuration_utils import get_head_shapes

from graphnet_datasets.frameworks.torch.capture.distributions import figures, set_initial


class _Cache:
    """The part of the interface of a cache that attention layers use."""

    is_compileable = True

    def __init__(self, step: Step, places: Tensor, block_tables: Tensor | None) -> None:
        self.step, self.places, self.block_tables = step, places, block_tables

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return 0: positions are arguments of a step."""
        del layer_idx
        return 0

    def update(
        self, keys: Tensor, values: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Store the keys and values of new tokens; return those of all tokens of the sequences."""
        stored_keys, stored_values = self.step.cached(layer_idx)
        return self._updated(stored_keys, keys), self._updated(stored_values, values)

    def _updated(self, cache: Tensor, new: Tensor) -> Tensor:
        if self.block_tables is None:
            cache.index_copy_(2, self.places, new)
            return cache
        blocks, size, heads, width = cache.shape
        cache.view(blocks * size, heads, width).index_copy_(
            0, self.places, new.transpose(1, 2).flatten(0, 1)
        )
        return cache[self.block_tables].flatten(1, 2).transpose(1, 2)


class Step(torch.nn.Module):
    """A language model with a cache; only the logits of the last token are computed.

    A contiguous cache has `sizes` (batch, tokens), and a paged one (blocks, tokens of a block).
    """

    def __init__(
        self, model: torch.nn.Module, sizes: tuple[int, int], is_paged: bool, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.model, self.is_paged = model, is_paged
        config: Any = model.config
        count = config.num_hidden_layers
        heads, widths = (
            size if isinstance(size, list) else [size] * count for size in get_head_shapes(config)
        )
        for layer in range(count):
            first, second = (sizes[1], heads[layer]) if is_paged else (heads[layer], sizes[1])
            for name in ("keys", "values"):
                shape = (sizes[0], first, second, widths[layer])
                cache = torch.empty(shape, dtype=dtype, device="meta")
                set_initial(cache, figures(0.0, 1.0))
                self.register_buffer(f"{name}_{layer}", cache)

    @property
    def called_model(self) -> torch.nn.Module:
        """The model itself, whose source is recorded with the graph."""
        return self.model

    def cached(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return the stored keys and values of a layer."""
        return getattr(self, f"keys_{layer}"), getattr(self, f"values_{layer}")

    def forward(
        self, input_ids: Tensor, positions: Tensor, block_tables: Tensor | None = None
    ) -> Tensor:
        """Return the logits that follow the last token of each sequence.

        The positions of the new tokens are a vector that all sequences share with a contiguous
        cache, or a matrix with a paged cache. A block table lists the blocks of each sequence.
        """
        places = positions
        stored, _ = self.cached(0)
        length = stored.shape[2]
        if block_tables is not None:
            size = stored.shape[1]
            length = block_tables.shape[1] * size
            blocks = block_tables.gather(1, positions // size)
            places = (blocks * size + positions % size).flatten()
        else:
            positions = positions[None]
        outputs = self.model(
            input_ids=input_ids,
            position_ids=positions,
            attention_mask=self._masks(positions, length),
            past_key_values=_Cache(self, places, block_tables),
            use_cache=True,
            logits_to_keep=1,
        )
        return outputs.logits

    def _masks(self, positions: Tensor, length: int) -> Tensor | dict[str, Tensor]:
        """Return the mask of attention, or one for each type of layer."""
        config = self.model.config
        tokens, last = torch.arange(length, device=positions.device), positions[:, None, :, None]
        mask = tokens <= last
        window = getattr(config, "sliding_window", None)
        kinds = set(getattr(config, "layer_types", None) or ())
        if window is None or kinds == {"full_attention"}:
            return mask
        near = mask & (tokens > last - window)
        if len(kinds) < 2:
            return near
        return {"full_attention": mask, "sliding_attention": near}
