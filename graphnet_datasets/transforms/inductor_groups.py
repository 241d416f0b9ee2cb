"""Groups of operators that TorchInductor fuses into one kernel, as reported by its scheduler."""

from __future__ import annotations

from ..errors import TransformError
from ..frameworks import find_fused
from .cut import Cutter
from .dependences import find_detour
from .operator_kinds import kind_of


def find_inductor_groups(cutter: Cutter, *, device: str = "cpu") -> list[tuple[int, ...]]:
    """Return the groups of at least two computing operators in one kernel, in order.

    TorchInductor runs in this process on the operators it traces; it fuses, but generates and runs
    no code. A cheap operator may belong to several groups, as several kernels compute it. An
    operator that is split between kernels belongs to the group of the kernel that finishes it. If a
    group is not convex, operators that its kernel starts are added, or operators that an earlier
    kernel has computed are removed; if it is still not convex, it cannot be cut out.

    Raises:
        TransformError: the sample is not a torch graph, or TorchInductor rejects it.
        UnknownOperatorError, UncheckedOperatorError, MaterializeError: as `materialize`.
        MissingExtraError: torch is not installed.

    >>> from graphnet_datasets.sample import Input, Op, Sample, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> sample = Sample("example/chain", "torch", "other",
    ...     (Input("input", Value("float32", (8, 8))),),
    ...     (Op("torch.matmul", (Ref(0), Ref(0))), Op("torch.exp", (Ref(1),)),
    ...      Op("torch.abs", (Ref(2),))), (Ref(3),))
    >>> find_inductor_groups(Cutter(sample))
    [(1, 2)]
    """
    sample = cutter.sample
    if sample.framework != "torch":
        raise TransformError(
            f"`{sample.id}` is a graph of {sample.framework}, which TorchInductor does not compile."
            " Use the method `rules` instead.",
            reason="it is not a graph of torch",
        )
    fusion = find_fused(
        sample, device=device, allow_unchecked_operators=cutter.allow_unchecked_operators
    )
    groups: dict[tuple[int, ...], None] = {}
    computed: set[int] = set()
    for kernel in fusion.kernels:
        kernel_ops = set(kernel.ops)
        forms = (kernel_ops, kernel_ops | {*kernel.split_ops}, kernel_ops - computed)
        computed |= kernel_ops
        selected = next(
            (form for form in forms if find_detour(cutter.dependences, form) is None), kernel_ops
        )
        computing = [
            position
            for position in selected
            if kind_of(sample.ops[position].target) not in ("view", "source")
        ]
        if len(computing) > 1:
            groups[tuple(sorted(selected))] = None
    return list(groups)


def find_cuda_groups(cutter: Cutter) -> list[tuple[int, ...]]:
    """Return the groups that TorchInductor fuses on an NVIDIA GPU.

    Raises:
        TransformError: there is no such GPU, or as `find_inductor_groups`.
    """
    return find_inductor_groups(cutter, device="cuda")
