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
        Format("pt2", ".pt2"),
        Format("onnx", ".onnx", ("torch", "onnxscript", "onnxruntime"), "convert"),
        Format("stablehlo", ".stablehlo", ("torch", "jax", "torchax", "flatbuffers"), "convert"),
        Format("networkx", ".json", ("networkx",), "convert"),
        Format("pyg", ".pt", ("torch", "torch_geometric"), "convert"),
        Format("kernelbench", ".py"),
        Format("fx-text", ".py"),
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
