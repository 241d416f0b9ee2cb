"""The same graph in float64, from the same inputs: what eager and the candidate approximate.

Every floating-point tensor becomes float64 and every complex one complex128, after the inputs were
made in their own dtypes; so do the dtypes that the graph names. Integers stay as they are.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.fx.node import map_aggregate

from ...sample import Sample
from ..outputs import leaves
from ..runtime import Workload
from .building.entries import entries_of

_WIDE_METHODS = {
    "half": "double",
    "bfloat16": "double",
    "float": "double",
    "chalf": "cdouble",
    "cfloat": "cdouble",
}


def float64_outputs(workload: Workload, sample: Sample) -> Any:
    """Return what `Arm.results` would, on input set 0, computed in float64; None where it cannot.

    A graph that draws random numbers has no such outputs: the generators draw others in float64.
    The workload cannot be used any more after this: its weights are widened in place, one by one,
    so that at no time all are there twice.

    Raises:
        Exception: whatever torch raises where an operator has no float64, or memory is short.
    """
    if _draws(workload, sample):
        return None
    arguments = workload.arguments(0)
    module = torch.fx.GraphModule(workload.module, widen(workload.module.graph))
    state = {name: workload.runtime.tensors_of(module)[name] for name in workload.state}
    workload.forget_inputs()
    workload.state.clear()
    for name in list(arguments):
        arguments[name] = _wide(arguments[name])
    for tensor in workload.runtime.tensors_of(module).values():
        tensor.data = _wide(tensor.data)
    written = [arguments[name] for name in workload.written]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # of what the graph makes without naming a dtype
    try:
        outputs = module(**arguments)
    finally:
        torch.set_default_dtype(before)
    effects = [*written, *state.values()]
    return (outputs, effects) if effects else outputs


def widen(graph: torch.fx.Graph) -> torch.fx.Graph:
    """Return a copy of a graph that names float64 and complex128 where it named less.

    >>> graph = torch.fx.symbolic_trace(lambda x: x.to(torch.bfloat16).float()).graph
    >>> [node.args[1:] or node.target for node in widen(graph).nodes if node.op == "call_method"]
    [(torch.float64,), 'double']
    """
    wide = copy.deepcopy(graph)
    for node in wide.nodes:
        node.args = map_aggregate(node.args, _wide_dtype)  # type: ignore[assignment] (a tuple)
        node.kwargs = map_aggregate(node.kwargs, _wide_dtype)  # type: ignore[assignment] (a dict)
        if node.op == "call_method" and node.target in _WIDE_METHODS:
            node.target = _WIDE_METHODS[node.target]
    return wide


def _wide_dtype(value: Any) -> Any:
    if not isinstance(value, torch.dtype):
        return value
    if value.is_floating_point:
        return torch.float64
    return torch.complex128 if value.is_complex else value


def _wide(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    wanted = _wide_dtype(value.dtype)
    return value if value.is_quantized else value.to(wanted)


def _draws(workload: Workload, sample: Sample) -> bool:
    """Tell whether the outputs depend on the seed; a dropout that is switched off draws nothing."""
    if not any(entry.is_random for entry in entries_of(sample)):
        return False
    checksums = []
    for seed in (1, 2):
        arguments = workload.arguments(0)
        workload.runtime.seed(seed)
        outputs = workload.module(**arguments)
        results = leaves((outputs, workload.effects(arguments)))
        checksums.append(
            [workload.runtime.checksum(each) for each in results if isinstance(each, torch.Tensor)]
        )
    return checksums[0] != checksums[1]
