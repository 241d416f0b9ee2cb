"""A `torch.fx.GraphModule` whose graph and text are made when somebody asks for them.

`materialize` gives such modules. The first plain call runs the plan of the graph, step by step. A
second call, and whatever else looks at the module (`.graph`, `.code`, `forward`, `torch.compile`,
`torch.export`, tracing, copying, hooks), has the graph made first; from then on the module is a
`GraphModule` like any other, with the `forward` that `torch.fx` printed. Who times calls has it
made before (`settle`): a plan takes a fraction of a microsecond more for each operator.
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
from .run_checks import NAME as CHECKS_NAME

_PLAN = "_graphnet_plan"
_CALLED = "_graphnet_was_called"
_MODULE = "_graphnet_module"
_PLAIN = (torch.Tensor, torch.nn.Parameter, int, float, bool)
"""Types of arguments of a plain call; anything else may follow what is called, and how."""

_lock = threading.RLock()


def make_deferred(plan: Plan, tensors: Mapping[str, torch.Tensor]) -> torch.fx.GraphModule:
    """Return a module that runs `plan` and holds `tensors`, parameters and buffers, by name."""
    module = torch.fx.GraphModule.__new__(torch.fx.GraphModule)
    torch.nn.Module.__init__(module)
    hold(module, plan, tensors).eval()
    kind = type(module)  # of this module alone
    kind.__name__ = "GraphModule"
    for name, member in _TEMPORARY.items():
        setattr(kind, name, member)
    setattr(kind, _MODULE, weakref.ref(module))
    vars(module)[_PLAN] = plan
    return module


def hold(
    module: torch.nn.Module, plan: Plan, tensors: Mapping[str, torch.Tensor]
) -> torch.nn.Module:
    """Return the module, which now holds the tensors and checks of a plan."""
    if plan.checks is not None:
        module.add_module(CHECKS_NAME, plan.checks)
    for name, tensor in tensors.items():
        if isinstance(tensor, torch.nn.Parameter):
            module.register_parameter(name, tensor)
        else:
            module.register_buffer(name, tensor)
    return module


def settle(module: Any) -> None:
    """Make the graph of a module and its `forward`, where that was put off.

    >>> settle(torch.nn.ReLU())  # of any other module there is nothing to make
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
    """Return what a `GraphModule` holds beside what every module does."""
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
    """Return the values of the inputs of a plain call, None of any other."""
    if (
        modules._has_any_global_hook()
        or any(getattr(module, name) for name in _HOOKS)
        or torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or torch.compiler.is_compiling()
    ):
        return None
    found = bind(plan.placeholders, args, kwargs)
    if not found or any(type(each) not in _PLAIN for each in found.values()):
        return None
    for index, name in plan.attributes.items():
        found[index] = getattr(module, name)
    return [found[index] for index in range(len(found))]


_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip


def _getattr(self: Any, name: str) -> Any:
    if name in _state_names():
        settle(self)
        return getattr(self, name)
    return torch.nn.Module.__getattr__(self, name)


class _Settling:
    """An attribute of the class of one module that has its graph made, and is gone then.

    Of the class alone it cannot tell the module: some of torch's tracers ask for
    `type(module).forward`. So the class knows it, weakly.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, module: Any, kind: type) -> Any:
        found = _module_of(kind) if module is None else module
        if found is None:
            return getattr(torch.fx.GraphModule, self._name)
        settle(found)
        return getattr(kind if module is None else module, self._name)

    def __set__(self, module: Any, value: Any) -> None:
        settle(module)
        setattr(module, self._name, value)


def _module_of(kind: type) -> Any:
    known = vars(kind).get(_MODULE)
    return None if known is None else known()


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
"""What the class of a module has until it is settled."""
