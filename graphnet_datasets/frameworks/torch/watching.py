"""Process state besides inputs and weights that affects how a `torch.fx.GraphModule` runs.

A candidate shares its process with eager and can find eager's module among the process's objects.
State that could be changed to observe or slow down eager is recorded before the candidate is
imported and compared after its last call.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch.fx.node import _get_qualified_name

from .building.deferred import settle

_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs",
    "_forward_pre_hooks_with_kwargs", "_forward_hooks_always_called", "_backward_hooks",
    "_backward_pre_hooks", "_state_dict_hooks",
)  # fmt: skip
_GLOBAL_HOOKS = tuple(name for name in vars(torch.nn.modules.module) if name.endswith("_hooks"))


def watched(module: torch.fx.GraphModule) -> Mapping[str, Any]:
    """Return, by name, the parts of `module` and of torch that are used when it is called.

    >>> module = torch.fx.symbolic_trace(torch.nn.Linear(2, 2))
    >>> before = watched(module)
    >>> handle = module.register_forward_hook(lambda *_: None)
    >>> [name for name, part in watched(module).items() if part != before[name]]
    ["a hook on eager's module"]
    """
    settle(module)
    kind = type(module)
    forward = kind.forward
    functions = torch.nn.modules.module
    seen: dict[str, Any] = {
        "a hook on eager's module": [
            list(map(id, getattr(submodule, name, {}).values()))
            for submodule in module.modules()
            for name in _HOOKS
        ],
        "a hook on all modules": [
            list(map(id, getattr(functions, name).values()))
            for name in _GLOBAL_HOOKS
            if hasattr(getattr(functions, name), "values")
        ],
        "`forward` of eager's module": _function(vars(module).get("forward", forward)),
        "`__call__` of eager's module": [
            _function(kind.__call__),
            _function(torch.nn.Module.__call__),
            _function(torch.nn.Module._call_impl),
            _function(torch.nn.Module._wrapped_call_impl),
            id(vars(module).get("_wrapped_call")),
            id(vars(kind).get("_wrapped_call")),
        ],
        "a weight of eager's module": [
            (name, id(tensor), tensor.data_ptr(), tensor.stride())
            for name, tensor in (*module.named_parameters(), *module.named_buffers())
            if tensor.layout is torch.strided
        ],
        "a mode that sees each operator": [
            torch._C._len_torch_dispatch_stack(),
            torch._C._len_torch_function_stack(),
        ],
        "a profiler or tracer": [id(sys.getprofile()), id(sys.gettrace())],
    }
    names = forward.__globals__
    for name in forward.__code__.co_names:
        if name in names:
            seen[f"`{name}` in the code of eager's module"] = id(names[name])
    for node in module.graph.nodes:
        if node.op == "call_function":
            path = _get_qualified_name(node.target)
            seen[f"`{path}`"] = _find(path)
        elif node.op == "call_method":
            seen[f"`torch.Tensor.{node.target}`"] = getattr(torch.Tensor, node.target, None)
    return seen


def _function(function: Any) -> tuple[Any, Any]:
    """Return a function and its code, which can be replaced in place."""
    return function, getattr(function, "__code__", None)


def _find(path: str) -> Any:
    """Return the object that a module's printed code finds under a qualified name."""
    first, *rest = path.split(".")
    member: Any = sys.modules.get(first)
    for name in rest:
        member = getattr(member, name, None)
    return member
