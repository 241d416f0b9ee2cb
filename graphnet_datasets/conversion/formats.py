"""The formats that samples can be converted to, and the packages that each needs."""

from __future__ import annotations

import dataclasses
import importlib.util

from ..errors import MissingExtraError, RunError
from ..suggestions import did_you_mean


@dataclasses.dataclass(frozen=True)
class Format:
    """A format: the suffix of its files, the modules it needs, and the extra that installs them."""

    name: str
    suffix: str
    description: str
    modules: tuple[str, ...] = ("torch",)
    extra: str = "torch"

    def check_installed(self) -> None:
        """Raise an error if a package is missing.

        Raises:
            MissingExtraError: a package is not installed; the message names the pip command.
        """
        for module in self.modules:
            if importlib.util.find_spec(module) is None:
                raise MissingExtraError(module, self.extra, f"Converting to `{self.name}`")


FORMATS = {
    item.name: item
    for item in (
        Format("pt2", ".pt2", "An exported program of `torch.export`, with weights."),
        Format(
            *("onnx", ".onnx", "An ONNX model with weights."),
            modules=("torch", "onnxscript", "onnxruntime"),
            extra="convert",
        ),
        Format(
            *("stablehlo", ".stablehlo", "StableHLO as serialized by `jax.export`, with weights."),
            modules=("torch", "jax", "torchax", "flatbuffers"),
            extra="convert",
        ),
        Format(
            *("networkx", ".json", "The data flow graph as node-link JSON of networkx."),
            modules=("networkx",),
            extra="convert",
        ),
        Format(
            *("pyg", ".pt", "The data flow graph as the dictionary of a PyTorch Geometric `Data`."),
            modules=("torch", "torch_geometric"),
            extra="convert",
        ),
        Format(
            "kernelbench",
            ".py",
            "A KernelBench problem: `Model`, `get_inputs` and `get_init_inputs`.",
        ),
        Format("fx-text", ".py", "The source of a `torch.nn.Module` that takes all inputs."),
    )
}
"""The formats by name."""


def find_format(name: str) -> Format:
    """Return a format by its name.

    Raises:
        RunError: there is no such format.

    >>> find_format("onnx").suffix
    '.onnx'
    """
    if name not in FORMATS:
        raise RunError(
            f"There is no format `{name}`.{did_you_mean(name, FORMATS)} The formats are "
            f"{', '.join(FORMATS)}."
        )
    return FORMATS[name]
