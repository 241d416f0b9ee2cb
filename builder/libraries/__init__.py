"""The libraries of the captured models: their builders and licences.

A library is imported when one of its models is requested; a missing library is reported with the
extra that installs it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version

import torch

from graphnet_datasets.errors import MissingExtraError

from ..catalog import CatalogError, Entry
from ..paddle_packages import PACKAGES
from . import (
    diffusers,
    geometric,
    licenses,
    modules,
    paddle,
    plain,
    rechub,
    segmentation,
    timm,
    torchao,
    torchaudio,
    torchvision,
    transformers,
    ultralytics,
)

Build = Callable[[Entry], torch.nn.Module]


@dataclasses.dataclass(frozen=True)
class Library:
    """A source of models. `extra` is the extra of this project that installs it."""

    distribution: str
    source: str
    license: str
    extra: str
    build: Build
    preload: Callable[[], None]
    has_weights: bool = False
    """Whether models must be built with weights, because their constructors call them."""
    is_embedded_whole: bool = False
    """Whether the embedded dataset has all graphs of its catalog."""
    is_quantised: bool = False
    """Whether models are built in the dtype of their entry, and captured by `torch.export`."""
    framework: str = "torch"
    worker: str = "builder.worker"
    """The worker module that captures its models."""
    licenses: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The licences of modules that do not have the library's licence."""

    @property
    def version(self) -> str:
        """The installed version; "" for this project's own models.

        Raises:
            MissingExtraError: the library is not installed.
        """
        if not self.distribution:
            return ""
        try:
            return version(self.distribution)
        except PackageNotFoundError as error:
            purpose = f"Capturing models of {self.distribution}"
            raise MissingExtraError(self.distribution, self.extra, purpose) from error

    def license_of(self, builder: str) -> str:
        """Return the licence of the code of a model."""
        return self.licenses.get(builder.partition(".")[0], self.license)


def _of_modules(
    name: str,
    distribution: str,
    source: str,
    license: str,
    licenses: Mapping[str, str] | None = None,
) -> Library:
    """Return a library whose models are named by module and class."""
    build, preload = modules.build, modules.preload_of(name)
    return Library(
        distribution, source, license, "catalogs", build, preload, licenses=licenses or {}
    )


LIBRARIES = {
    "torch": Library(
        "", "graphnet-datasets/builder", "Apache-2.0", "builder",
        plain.build, plain.preload,
    ),
    "transformers": Library(
        "transformers", "huggingface/transformers", "Apache-2.0", "builder",
        transformers.build, transformers.preload,
    ),
    "timm": Library(
        "timm", "huggingface/pytorch-image-models", "Apache-2.0", "catalogs",
        timm.build, timm.preload,
    ),
    "torchvision": Library(
        "torchvision", "pytorch/vision", "BSD-3-Clause", "catalogs",
        torchvision.build, torchvision.preload,
    ),
    "diffusers": Library(
        "diffusers", "huggingface/diffusers", "Apache-2.0", "catalogs",
        diffusers.build, diffusers.preload,
    ),
    "torchaudio": Library(
        "torchaudio", "pytorch/audio", "BSD-2-Clause", "catalogs",
        torchaudio.build, torchaudio.preload,
    ),
    "torch_geometric": Library(
        "torch-geometric", "pyg-team/pytorch_geometric", "MIT", "catalogs",
        geometric.build, geometric.preload,
    ),
    "ultralytics": Library(
        "ultralytics", "ultralytics/ultralytics", "AGPL-3.0", "catalogs",
        ultralytics.build, ultralytics.preload, has_weights=True,
    ),
    "segmentation_models_pytorch": Library(
        "segmentation-models-pytorch", "qubvel-org/segmentation_models.pytorch", "MIT", "catalogs",
        segmentation.build, segmentation.preload,
    ),
    "pytorchcv": _of_modules("pytorchcv", "pytorchcv", "osmr/pytorchcv", "MIT"),
    "vit_pytorch": _of_modules("vit_pytorch", "vit-pytorch", "lucidrains/vit-pytorch", "MIT"),
    "monai": _of_modules("monai", "monai", "Project-MONAI/MONAI", "Apache-2.0"),
    "spandrel": _of_modules(
        "spandrel", "spandrel", "chaiNNer-org/spandrel", "MIT", licenses.SPANDREL
    ),
    "kornia": _of_modules("kornia", "kornia", "kornia/kornia", "Apache-2.0"),
    "neuralop": _of_modules("neuralop", "neuraloperator", "neuraloperator/neuraloperator", "MIT"),
    "asteroid": _of_modules("asteroid", "asteroid", "asteroid-team/asteroid", "MIT"),
    "speechbrain": _of_modules(
        "speechbrain", "speechbrain", "speechbrain/speechbrain", "Apache-2.0"
    ),
    "torch_rechub": Library(
        "torch-rechub", "datawhalechina/torch-rechub", "MIT", "catalogs",
        rechub.build, rechub.preload,
    ),
    "torchao": Library(
        "torchao", "pytorch/ao", "BSD-3-Clause", "catalogs",
        torchao.build, torchao.preload, has_weights=True, is_quantised=True,
    ),
    "paddle": Library(
        "paddlepaddle", "PaddlePaddle/Paddle", "Apache-2.0", "paddle",
        paddle.build, paddle.preload, is_embedded_whole=True, framework="paddle",
        worker="builder.paddle_worker",
    ),
    "paddleclas": Library(
        "paddleclas", "PaddlePaddle/PaddleClas", "Apache-2.0", "catalogs",
        paddle.build, paddle.preload, framework="paddle", worker="builder.paddle_worker",
    ),
    **{
        name: Library(
            package.distribution, package.source, "Apache-2.0", "catalogs",
            paddle.build, paddle.preload, framework="paddle", worker="builder.paddle_worker",
        )
        for name, package in PACKAGES.items()
    },
}  # fmt: skip


def library_of(entry: Entry) -> Library:
    """Return the library of an entry.

    Raises:
        CatalogError: the name is unknown.
    """
    if entry.library not in LIBRARIES:
        raise CatalogError(
            f"`{entry.name}` names the library `{entry.library}` "
            f"(accepted: {', '.join(LIBRARIES)})."
        )
    return LIBRARIES[entry.library]
