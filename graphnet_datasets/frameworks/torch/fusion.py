"""Fusion decisions of TorchInductor, read from its scheduler without generating code.

Each node of a sample's module is annotated with the position of its operator. Tracing and graph
passes preserve these annotations, so the scheduler's nodes can be mapped to operators. Compilation
is aborted after fusion.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._inductor.compile_fx import compile_fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.node import map_arg

from ...errors import TransformError
from ...sample import Sample
from ..fusion import Fusion, Kernel
from .building.run_checks import NAME as CHECKS_NAME
from .materialize import materialize
from .tensors import make_inputs

COMPILER = "inductor"
MARK = "graphnet_op"
"""The key of a node's annotation that holds its operator's position."""


def find_fused(
    sample: Sample, *, device: str = "cpu", allow_unchecked_operators: bool = False
) -> Fusion:
    """Return the operators that TorchInductor fuses on a device; see `frameworks.find_fused`.

    Raises:
        TransformError: If TorchInductor cannot compile the sample.
        UnknownOperatorError, UncheckedOperatorError, MemoryLimitError, MaterializeError: As in
            `materialize`.
    """
    if torch.device(device).type == "cuda" and not torch.cuda.is_available():
        raise TransformError(
            "There is no GPU here for which TorchInductor could fuse.",
            reason="there is no GPU here",
        )
    module, values = mark(
        sample, device=device, allow_unchecked_operators=allow_unchecked_operators
    )
    scheduler_nodes: list[Any] = []

    def keep(nodes: list[Any]) -> list[Any]:
        scheduler_nodes.extend(map(_read_node, nodes))
        raise _FusedError

    mode = FakeTensorMode()
    fakes = [mode.from_tensor(value, static_shapes=True) for value in values]
    patches = {"_post_fusion_custom_pass": keep, "force_disable_caches": True}
    failure: Exception | None = None
    with _quietly(), torch.no_grad(), fresh_caches():
        try:
            compile_fx(module, fakes, config_patches=patches)
        except Exception as error:
            failure = error
    if failure is not None and not _is_ours(failure):
        raise compile_error(sample, failure) from failure
    return Fusion(COMPILER, torch.__version__, device, tuple(_kernels(scheduler_nodes)))


class _FusedError(Exception):
    """Aborts a compilation once fusion is known."""


def _is_ours(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, _FusedError):
            return True
        error = error.__cause__ or error.__context__
    return False


def compile_error(sample: Sample, error: Exception) -> TransformError:
    """Return the error for a sample that TorchInductor cannot compile."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return TransformError(
        f"TorchInductor cannot compile `{sample.id}`: {lines[0][:300]}",
        reason=f"TorchInductor cannot compile the graph ({type(error).__name__})",
    )


def mark(
    sample: Sample, *, device: str, allow_unchecked_operators: bool
) -> tuple[torch.fx.GraphModule, list[torch.Tensor]]:
    """Return a module of tensors whose nodes are annotated with operators, and its arguments.

    Raises:
        UnknownOperatorError, UncheckedOperatorError, MemoryLimitError, MaterializeError: As in
            `materialize`.
    """
    module = materialize(sample, device=device, allow_unchecked_operators=allow_unchecked_operators)
    graph = module.graph
    for node in list(graph.nodes):
        if node.op == "call_module" and node.target == CHECKS_NAME:
            graph.erase_node(node)
    nodes = [node for node in graph.nodes if node.op != "output"]
    for position, node in enumerate(nodes[len(sample.inputs) :]):
        node.meta["custom"] = {MARK: position}
    tensors = []
    for node, value in zip(nodes, make_inputs(sample, device=device).values(), strict=False):
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            continue
        for user in list(node.users):  # replace a number by its value at the capture
            user.args = map_arg(user.args, _replacing(node, value))
            user.kwargs = map_arg(user.kwargs, _replacing(node, value))
        graph.erase_node(node)
    module.recompile()
    return module, tensors


def _replacing(node: torch.fx.Node, value: Any) -> Any:
    return lambda operand: value if operand is node else operand


@dataclasses.dataclass(frozen=True)
class _Node:
    """A scheduler node: the names of the traced nodes it computes, with their operators."""

    computed: dict[str, int]
    is_extern: bool


def _read_node(node: Any) -> _Node:
    """Return the operators of a node; a library call has only the operator that it implements."""
    from torch._inductor.scheduler import ExternKernelSchedulerNode

    is_extern = isinstance(node, ExternKernelSchedulerNode)
    computed = {}
    for member in node.get_nodes():
        if member.node is None:
            continue
        origins = [member.node.get_origin_node()] if is_extern else member.node.get_origins()
        for origin in origins:
            position = operator_of(origin)
            if position is not None:
                computed[str(origin.name)] = position
    return _Node(computed, is_extern)


def operator_of(node: Any) -> int | None:
    """Return the sample's operator that a traced node belongs to, or None if unknown."""
    if node is None:
        return None
    position = (node.meta.get("custom") or {}).get(MARK)
    return position if isinstance(position, int) else None


def _kernels(nodes: Sequence[_Node]) -> Iterator[Kernel]:
    """Assign each operator that is split over kernels to the kernel that finishes it."""
    homes: dict[int, list[int]] = {}
    parts: dict[int, set[frozenset[str]]] = {}
    for number, node in enumerate(nodes):
        for position in set(node.computed.values()):
            names = frozenset(
                name
                for name, computed_position in node.computed.items()
                if computed_position == position
            )
            homes.setdefault(position, []).append(number)
            parts.setdefault(position, set()).add(names)
    # An operator with the same parts in all kernels is recomputed in each kernel.
    finished_in = {position: homes[position][-1] for position in homes if len(parts[position]) > 1}
    for number, node in enumerate(nodes):
        positions = set(node.computed.values())
        begun = {position for position in positions if finished_in.get(position, number) != number}
        yield Kernel(tuple(sorted(positions - begun)), tuple(sorted(begun)), node.is_extern)


@contextlib.contextmanager
def fresh_caches() -> Iterator[Path]:
    """Let TorchInductor cache files in a temporary directory."""
    from torch._inductor.utils import fresh_cache

    with tempfile.TemporaryDirectory() as directory, fresh_cache(dir=directory):
        yield Path(directory)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    # Inductor warns that the compilation ended early, which is intended.
    logger = logging.getLogger("torch._inductor.utils")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
