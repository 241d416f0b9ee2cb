"""Float64 reference results, which eager and the candidate both approximate.

Inputs are created in their own dtypes. Floating-point tensors are then converted to float64 and
complex tensors to complex128, as are dtypes named in the graph. Integers are unchanged.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.fx.node import map_aggregate

from ...sample import Sample
from ..outputs import leaves
from ..protocols import Workload
from .building.entries import entries_of

_WIDE_METHODS = {
    "half": "double",
    "bfloat16": "double",
    "float": "double",
    "chalf": "cdouble",
    "cfloat": "cdouble",
}


def float64_outputs(workload: Workload, sample: Sample) -> Any:
    """Return the float64 counterpart of `Arm.results` for input set 0, or None without an oracle.

    A graph that draws random numbers has no counterpart, because float64 draws differ. The workload
    is unusable afterwards: its weights are converted in place, one at a time, to avoid a second
    copy of all weights.

    Raises:
        Exception: Any torch exception, e.g. for an operator without float64 or lack of memory.
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
    torch.set_default_dtype(torch.float64)  # for tensors that the graph creates without a dtype
    try:
        outputs = module(**arguments)
    finally:
        torch.set_default_dtype(before)
    effects = [*written, *state.values()]
    return (outputs, effects) if effects else outputs


def widen(graph: torch.fx.Graph) -> torch.fx.Graph:
    """Return a copy of a graph with its dtypes replaced by float64 and complex128.

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
    wide_dtype = _wide_dtype(value.dtype)
    return value if value.is_quantized else value.to(wide_dtype)


def _draws(workload: Workload, sample: Sample) -> bool:
    """Return whether the outputs depend on the seed; inactive dropouts do not count."""
    if not any(entry.is_random for entry in entries_of(sample)):
        return False
    checksums = []
    for seed in (1, 2):
        arguments = workload.arguments(0)
        workload.runtime.seed(seed)
        outputs = workload.module(**arguments)
        results = leaves((outputs, workload.effects(arguments)))
        checksums.append(
            [
                workload.runtime.checksum(result)
                for result in results
                if isinstance(result, torch.Tensor)
            ]
        )
    return checksums[0] != checksums[1]
