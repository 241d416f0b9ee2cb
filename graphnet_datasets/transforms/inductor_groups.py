"""Which operators of a graph TorchInductor makes one kernel of, as its scheduler says."""

from __future__ import annotations

from ..errors import TransformError
from ..frameworks import find_fused
from .cut import Cutter
from .dependences import find_detour
from .operator_kinds import kind_of


def find_inductor_groups(cutter: Cutter, *, device: str = "cpu") -> list[tuple[int, ...]]:
    """Return the groups of two and more operators that compute in one kernel, in order.

    TorchInductor is asked in this process, with the operators that it traces; it fuses, and no code
    is generated or run. A cheap operator may be in several groups, as it is computed in several
    kernels. An operator of which several kernels do a part each is in the group of the one that
    finishes it. Where a group is not convex, the operators that its kernel begins are added, or
    those left out that an earlier kernel has computed; if it is not convex even so it cannot be cut
    out.

    Raises:
        TransformError: the sample is not of torch, or TorchInductor does not take it.
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
            " Find its groups with the method `rules`.",
            reason="it is no graph of torch",
        )
    fusion = find_fused(
        sample, device=device, allow_unchecked_operators=cutter.allow_unchecked_operators
    )
    groups: dict[tuple[int, ...], None] = {}
    computed: set[int] = set()
    for kernel in fusion.kernels:
        own = set(kernel.ops)
        forms = (own, own | {*kernel.split_ops}, own - computed)
        computed |= own
        chosen = next(
            (form for form in forms if find_detour(cutter.dependences, form) is None), own
        )
        computing = [
            each for each in chosen if kind_of(sample.ops[each].target) not in ("view", "source")
        ]
        if len(computing) > 1:
            groups[tuple(sorted(chosen))] = None
    return list(groups)


def find_cuda_groups(cutter: Cutter) -> list[tuple[int, ...]]:
    """Return the groups that TorchInductor makes one kernel of on a GPU of NVIDIA's.

    Raises:
        TransformError: there is none here, or as `find_inductor_groups`.
    """
    return find_inductor_groups(cutter, device="cuda")
