"""Kernels and sizes of the Tensor Comprehensions paper (Vasilache et al., 2018) and its code."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

_EXAMPLES = Path(__file__).parents[2] / "examples" / "tc"

Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class PaperKernel:
    """A kernel at one size.

    Attributes:
        name: name of the kernel in the paper and its code.
        size: label of the size.
        source: source of a single definition.
        shapes: shapes of the inputs, in order.
        gathers: `(input, bound)` for each input of subscripts, whose values are below `bound`.
    """

    name: str
    size: str
    source: str
    shapes: tuple[Shape, ...]
    gathers: tuple[tuple[int, int], ...] = ()

    @property
    def label(self) -> str:
        """The kernel and its size, such as `tmm 128,256,32`."""
        return f"{self.name} {self.size}"


def _read(name: str) -> str:
    return (_EXAMPLES / f"{name}.tc").read_text(encoding="utf-8")


TMM = _read("tmm")
TBMM = _read("tbmm")
GROUP_CONVOLUTION = _read("gconv")
LUT1 = _read("1lut")
LUT2 = _read("2lut")
C3 = _read("c3")
MLP1 = _read("mlp1")
MLP3 = _read("mlp3")
PRODUCTION = _read("production")
KRONECKER3 = _read("kronecker3")
MOMENTS = _read("moments")
GROUP_NORM = _read("group_norm")
WAVENET = _read("wavenet")
LAYER_NORM = _read("layer_norm")


def in_dtype(source: str, dtype: str) -> str:
    """Return a kernel with another type of float; results of functions are converted to it.

    >>> in_dtype("O(i) = fmax(O(i), float(0))", "bfloat16")
    'O(i) = bfloat16(fmax(O(i), bfloat16(0)))'
    """
    text = re.sub(r"\bfloat\b", dtype, source)
    return re.sub(r"(?m) = ((?:fmax|tanh)\(.*)$", rf" = {dtype}(\1)", text)


def kernels(num_embeddings: int = 100_000) -> tuple[PaperKernel, ...]:
    """Return every kernel of the paper at every size (23 pairs), and layer norm.

    Args:
        num_embeddings: rows of each embedding table; the paper uses 10 million.

    >>> len(kernels()), kernels()[0].label
    (24, 'tmm 128,256,32')
    """
    kernels = [
        PaperKernel("tmm", f"{m},{n},{k}", TMM, ((m, k), (n, k)))
        for m, n, k in ((128, 256, 32), (128, 1024, 1024), (128, 16384, 4096))
    ]
    kernels.append(PaperKernel("tbmm", "500,26,72,26", TBMM, ((500, 26, 72), (500, 72, 26))))
    kernels += [
        PaperKernel(
            "gconv",
            f"{channels},{size}",
            GROUP_CONVOLUTION,
            ((32, 32, channels, size, size), (32, channels, channels, 3, 3), (32, channels)),
        )
        for channels, size in ((4, 56), (8, 28), (16, 14), (32, 7))
    ]
    rows = num_embeddings
    tables: tuple[Shape, ...] = ((rows, 64), (128, 50))
    kernels.append(PaperKernel("1LUT", "128,64,50", LUT1, tables, ((1, rows),)))
    kernels.append(PaperKernel("2LUT", "128,64,50", LUT2, tables * 2, ((1, rows), (3, rows))))
    c3: tuple[Shape, ...] = ((128, 1000), (1024, 1000))
    kernels.append(PaperKernel("C3", "128,1000,1024", C3, c3))
    mlp1: tuple[Shape, ...] = ((128, 2000), (2000, 128), (128,))
    kernels.append(PaperKernel("MLP1", "128,2000,128", MLP1, mlp1))
    layers: tuple[Shape, ...] = ((64, 128), (64,), (32, 64), (32,), (2, 32), (2,))
    kernels.append(PaperKernel("MLP3", "128,128,64,32,2", MLP3, ((128, 128), *layers)))
    production = (*tables, *tables, *c3, *mlp1, *layers)
    gathers = ((1, rows), (3, rows))
    kernels.append(PaperKernel("production", "128", PRODUCTION, production, gathers))
    for sizes in ((32, 32, 32), (64, 64, 64), (64, 128, 128)):
        weights = tuple((16, size) for size in sizes)
        kernels.append(
            PaperKernel(
                "Kronecker3", ",".join(map(str, sizes)), KRONECKER3, (*weights, (256, *sizes))
            )
        )
    kernels += [
        PaperKernel("moments", f"{n},{k}", MOMENTS, ((n, k),))
        for n, k in ((128, 2304), (1024, 36864))
    ]
    kernels += [
        PaperKernel(
            "group norm", f"{n},512,{s},{s}", GROUP_NORM, ((n, 32, 16, s, s), (32, 16), (32, 16))
        )
        for n, s in ((4, 12), (32, 48))
    ]
    kernels += [
        PaperKernel(
            "WaveNet",
            f"d{d}",
            WAVENET,
            (
                *((1, 32, 4000), (32, 32, 2), (32,), (32, 32, 2), (32,), (32, 32), (32,)),
                *((256, 32), (256,), (d,)),
            ),
        )
        for d in (1, 32)
    ]
    kernels.append(
        PaperKernel("layer norm", "1024,1024", LAYER_NORM, ((1024, 1024), (1024,), (1024,)))
    )
    return tuple(kernels)
