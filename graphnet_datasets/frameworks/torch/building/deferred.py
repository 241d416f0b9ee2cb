"""A `torch.fx.GraphModule` that creates its graph and code on demand.

`materialize` returns such modules. The first plain call runs the plan step by step. A second call,
or any other access (`.graph`, `.code`, `forward`, `torch.compile`, `torch.export`, tracing,
copying, hooks), first creates the graph. The module is then an ordinary `GraphModule` with a
`forward` printed by `torch.fx`. Benchmarks create the graph beforehand with `settle`, because a
plan takes a fraction of a microsecond longer per operator.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.modules import module as modules

from .plan import Plan, bind

_PLAN = "_graphnet_plan"
_CALLED = "_graphnet_was_called"
_MODULE = "_graphnet_module"
_PLAIN = (torch.Tensor, torch.nn.Parameter, int, float, bool)
"""Argument types of a plain call; other arguments may observe how the module runs."""

_lock = threading.RLock()


def make_deferred(plan: Plan, tensors: Mapping[str, torch.Tensor]) -> torch.fx.GraphModule:
    """Return a module that runs `plan` and holds the parameters and buffers `tensors` by name."""
    module = torch.fx.GraphModule.__new__(torch.fx.GraphModule)
    torch.nn.Module.__init__(module)
    hold(module, plan, tensors).eval()
    kind = type(module)  # `GraphModule` creates a class for each module
    kind.__name__ = "GraphModule"
    for name, member in _TEMPORARY.items():
        setattr(kind, name, member)
    setattr(kind, _MODULE, weakref.ref(module))
    vars(module)[_PLAN] = plan
    return module


def hold(
    module: torch.nn.Module, plan: Plan, tensors: Mapping[str, torch.Tensor]
) -> torch.nn.Module:
    """Register the tensors and modules of a plan on a module, and return the module."""
    for name, part in plan.modules.items():
        module.add_module(name, part)
    for name, tensor in tensors.items():
        if isinstance(tensor, torch.nn.Parameter):
            module.register_parameter(name, tensor)
        else:
            module.register_buffer(name, tensor)
    return module


def settle(module: Any) -> None:
    """Create the graph and `forward` of a module, if they were deferred.

    >>> settle(torch.nn.ReLU())  # other modules are unchanged
    """
    with _lock:
        plan = vars(module).get(_PLAN)
        if plan is None:
            return
        graph = plan.make_graph()
        blank = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
        for name in _state_names():
            vars(module).setdefault(name, vars(blank)[name])
        kind = type(module)
        for name in (*_TEMPORARY, _MODULE):
            delattr(kind, name)
        module.graph = graph
        del vars(module)[_PLAN]
        vars(module).pop(_CALLED, None)


@functools.cache
def _state_names() -> frozenset[str]:
    """Return the attributes that a `GraphModule` has beyond those of every module."""
    blank = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
    return frozenset(vars(blank).keys() - vars(torch.nn.Module()).keys())


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    plan = vars(self).get(_PLAN)
    if plan is not None and _CALLED not in vars(self):
        values = _plain_values(self, plan, args, kwargs)
        if values is not None:
            vars(self)[_CALLED] = True
            return plan.run(values)
    settle(self)
    return self(*args, **kwargs)


def _plain_values(
    module: Any, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any] | None:
    """Return the input values of a plain call, or None for any other call."""
    if (
        modules._has_any_global_hook()
        or any(getattr(module, name) for name in _HOOKS)
        or torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or torch.compiler.is_compiling()
    ):
        return None
    values = bind(plan.placeholders, args, kwargs)
    if not values or any(type(value) not in _PLAIN for value in values.values()):
        return None
    for index, name in plan.attributes.items():
        values[index] = getattr(module, name)
    return [values[index] for index in range(len(values))]


_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip


def _getattr(self: Any, name: str) -> Any:
    if name in _state_names():
        settle(self)
        return getattr(self, name)
    return torch.nn.Module.__getattr__(self, name)


class _Settling:
    """A class attribute of a single module that creates the module's graph and then removes itself.

    Some tracers of torch read `type(module).forward`, without the module, so the class keeps a weak
    reference to it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, module: Any, kind: type) -> Any:
        target_module = _module_of(kind) if module is None else module
        if target_module is None:
            return getattr(torch.fx.GraphModule, self._name)
        settle(target_module)
        return getattr(kind if module is None else module, self._name)

    def __set__(self, module: Any, value: Any) -> None:
        settle(module)
        setattr(module, self._name, value)


def _module_of(kind: type) -> Any:
    module_ref = vars(kind).get(_MODULE)
    return None if module_ref is None else module_ref()


_TEMPORARY: Mapping[str, Any] = {
    "__call__": _call,
    "__getattr__": _getattr,
    **{
        name: _Settling(name)
        for name in (
            "__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__reduce_package__",
            "_call_impl", "_recompile_submodules", "_wrapped_call_impl", "compile", "forward",
            "graph", "recompile",
        )
    },
}  # fmt: skip
"""Class attributes of a module until its graph is created."""
