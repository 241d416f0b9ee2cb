"""Licences of architectures that differ from the licence of the library.

Spandrel copies the code of its architectures from their authors' repositories. The licence of each
copy is in `libs/spandrel/spandrel/architectures/*/__arch/LICENSE` of
https://github.com/chaiNNer-org/spandrel/tree/b0c3eb2.
"""

from __future__ import annotations

_SPANDREL = {
    "Apache-2.0": (
        "ATD", "CRAFT", "DAT", "DCTLSA", "DITN", "ESRGAN", "FBCNN", "GFPGAN", "IPT", "LaMa",
        "OmniSR", "RGT", "RestoreFormer", "SAFMN", "SAFMNBCIE", "SCUNet", "SPAN", "SeemoRe",
        "Swin2SR", "SwinIR",
    ),
    "BSD-3-Clause": ("Compact", "MMRealSR"),
    "CC-BY-SA-4.0": ("AuraSR",),
    "CC0-1.0": ("SwiftSRGAN",),
    "MIT": (
        "DRCT", "DRUNet", "DnCNN", "FDAT", "FFTformer", "GRL", "HAT", "HVICIDNet", "KBNet",
        "MixDehazeNet", "MoESR", "MoSR", "NAFNet", "PLKSR", "RCAN", "RealCUGAN", "RetinexFormer",
        "Uformer",
    ),
}  # fmt: skip

SPANDREL = {name: license for license, names in _SPANDREL.items() for name in names}
"""The SPDX identifier of each architecture of spandrel, by the name of its module."""
