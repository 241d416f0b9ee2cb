"""Fusion decisions of a framework's own compiler, in a framework-independent form."""

from __future__ import annotations

import dataclasses

from ..sample import Sample
from .contract import module


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel of a compiler: the operators that it completes (`ops`) and those that it starts.

    An operator in `split_ops` is computed only in part; a later kernel has it in `ops`. `is_extern`
    marks a library call, as opposed to generated code.
    """

    ops: tuple[int, ...]
    split_ops: tuple[int, ...] = ()
    is_extern: bool = False


@dataclasses.dataclass(frozen=True)
class Fusion:
    """The kernels that a compiler would generate for a sample on a device, in order.

    An operator may be in several kernels, since cheap operators are recomputed instead of stored.
    """

    compiler: str
    version: str
    device: str
    kernels: tuple[Kernel, ...]


def find_fused(
    sample: Sample, *, device: str = "cpu", allow_unchecked_operators: bool = False
) -> Fusion:
    """Return which operators the framework's own compiler fuses on a device.

    For torch the compiler is TorchInductor, stopped after fusion and before code generation. It
    runs in this process, on fake tensors.

    Raises:
        TransformError: the compiler does not accept the sample.
        UnknownFrameworkError: the framework does not report fusion decisions.
        UnknownOperatorError, UncheckedOperatorError, MemoryLimitError, MaterializeError: as
            `materialize`.
        MissingExtraError: the sample's framework is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> sample = Sample("example/chain", "torch", "other",
    ...     (Input("input", Value("float32", (8, 8))),),
    ...     (Op("torch.matmul", (Ref(0), Ref(0))), Op("torch.exp", (Ref(1),)),
    ...      Op("torch.abs", (Ref(2),))), (Ref(3),))
    >>> [each.ops for each in find_fused(sample).kernels]
    [(0,), (1, 2)]
    """
    return module(sample.framework, "fusion", "Finding fused operators").find_fused(
        sample, device=device, allow_unchecked_operators=allow_unchecked_operators
    )
