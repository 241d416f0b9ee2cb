"""Workloads of walked models: batch size, length, dtype and mode.

A workload depends only on the model's name, so that adding models does not change others. Of twenty
models, eight are captured at batch 1, eight with symbolic dimensions, three in half precision and
two in train mode.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from collections.abc import Mapping

TOKENS = (16, 32, 64, 128, 256, 384, 512, 1024, 2048)
"""Text lengths; a workload uses one that fits the positions of its model."""

_LONG = {"encoder": (128, 256, 384, 512), "decoder": (256, 512, 1024, 2048)}
_ALL_POSITIONS = 128
"""Models with at most this many positions use all of them: prompts for images and audio."""


@dataclasses.dataclass(frozen=True)
class Workload:
    """The workload of an entry; with `is_dynamic`, batch size and length are symbols."""

    batch: int = 1
    dtype: str = "float32"
    mode: str = "eval"
    is_dynamic: bool = False

    @property
    def suffix(self) -> str:
        """The suffix of an entry's name, empty for batch 1 in float32.

        >>> Workload(8, "bfloat16", is_dynamic=True).suffix, Workload(16).suffix, Workload().suffix
        ('-bfloat16-dynamic', '-b16', '')
        """
        parts = [
            "train" if self.mode == "train" else "",
            "" if self.dtype == "float32" else self.dtype,
            "dynamic" if self.is_dynamic else "",
        ]
        if not any(parts) and self.batch > 1:
            parts.append(f"b{self.batch}")
        return "".join(f"-{part}" for part in parts if part)


_CYCLE = (
    *[Workload()] * 6,
    Workload(8),
    Workload(16),
    *[Workload(4, is_dynamic=True)] * 6,
    Workload(8, mode="train"),
    Workload(4, mode="train", is_dynamic=True),
    Workload(dtype="bfloat16"),
    Workload(8, "float16"),
    Workload(2, "bfloat16", is_dynamic=True),
    Workload(),
)


def workload_of(name: str, *, is_language_model: bool = False) -> Workload:
    """Return the workload of a model; every other language model is deployed in bfloat16.

    >>> workload_of("resnet50")
    Workload(batch=4, dtype='float32', mode='eval', is_dynamic=True)
    """
    number = zlib.crc32(name.encode())
    workload = _CYCLE[number % len(_CYCLE)]
    if is_language_model and workload.mode == "eval" and number // len(_CYCLE) % 2:
        return dataclasses.replace(workload, dtype="bfloat16")
    return workload


def tokens_of(name: str, positions: int | None, *, is_language_model: bool = False) -> int:
    """Return a sequence length: 128 to 512 for encoders, up to 2,048 for language models.

    At most three quarters of the positions are taken, since models reserve some of them.

    >>> tokens_of("bert", 512), tokens_of("clip", 77), tokens_of("tiny", 130)
    (384, 77, 64)
    """
    if positions is not None and 4 <= positions <= _ALL_POSITIONS:
        return positions
    lengths = _LONG["decoder" if is_language_model else "encoder"]
    wanted = lengths[zlib.crc32(name.encode()) // 7 % len(lengths)]
    num_cached = wanted if positions is None or positions < 4 else positions * 3 // 4
    return max(
        (length for length in TOKENS if length <= min(wanted, num_cached)), default=TOKENS[0]
    )


def batched(inputs: Mapping[str, str], batch: int) -> dict[str, str]:
    """Return inputs of catalog lines with another batch, or unchanged unless all have a batch of 1.

    >>> batched({"x": "normal(1,3,8,8)", "past": "cache(1,32)"}, 4)
    {'x': 'normal(4,3,8,8)', 'past': 'cache(4,32)'}
    >>> batched({"x": "ids(4,8; 9)"}, 2)
    {'x': 'ids(4,8; 9)'}
    """
    leading = re.compile(r"\A(\w+)\(1(?=[,;)])")
    if batch == 1 or not all(leading.match(text) for text in inputs.values()):
        return dict(inputs)
    return {name: leading.sub(rf"\1({batch}", text) for name, text in inputs.items()}


def lengthened(inputs: Mapping[str, str], tokens: int) -> dict[str, str]:
    """Return input specifications with the text length changed from 32 tokens.

    Lengths of image tokens depend on the image and are kept.

    >>> lengthened({"ids": "ids(1,32; 9)", "mask": "full(1,32; 1)", "x": "normal(1,8)"}, 128)
    {'ids': 'ids(1,128; 9)', 'mask': 'full(1,128; 1)', 'x': 'normal(1,8)'}
    """
    if any(text.startswith("prompt(") for text in inputs.values()):
        return dict(inputs)
    return {
        name: re.sub(r"\A((?:ids|full|boxes)\(\d+),32(?=[,;)])", rf"\1,{tokens}", text)
        for name, text in inputs.items()
    }


def vision_line(
    name: str, library: str, builder: str, line_overrides: str, inputs: Mapping[str, str]
) -> str:
    """Return the catalog line of an image model, whose arguments are positional.

    >>> vision_line("timm/vit", "timm", "vit", "", {"_0": "normal(1,3,224,224)"})
    'timm/vit-bfloat16 | cv | timm | vit |  | _0=normal(1,3,224,224) | bfloat16 | eval |  | '
    """
    workload = workload_of(name)
    inputs = batched(inputs, workload.batch)
    calls = " ".join(f"{argument}={text}" for argument, text in inputs.items())
    dynamic = " ".join(f"{argument}.0" for argument in inputs) if workload.is_dynamic else ""
    fields = (
        f"{name}{workload.suffix}", "cv", library, builder, line_overrides, calls,
        workload.dtype, workload.mode, dynamic, "",
    )  # fmt: skip
    return " | ".join(fields)
