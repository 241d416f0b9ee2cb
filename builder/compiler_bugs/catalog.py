"""All known bugs, in the order of the table."""

from __future__ import annotations

from . import inductor, iree, onnxruntime, openvino, paddle, torchscript, tvm
from .bug import Bug

BUGS: tuple[Bug, ...] = (
    *(
        bug
        for module in (inductor, torchscript, onnxruntime, openvino, tvm, iree)
        for bug in module.catalog.bugs
    ),
    *paddle.BUGS,
)
