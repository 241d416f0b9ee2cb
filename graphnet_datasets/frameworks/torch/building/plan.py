"""Resolved and checked calls of a graph, from which a `torch.fx` graph can be made.

Creating a `torch.fx.Graph`, printing it and compiling the code takes several times as long as the
rest of `materialize`. A plan can run directly, and can create the graph later.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from ....sample.arguments import Ref
from .bodies import LOOP_CHECKS_NAME, LoopChecks
from .run_checks import NAME as CHECKS_NAME
from .run_checks import SizeChecks

_LITERALS = frozenset((int, float, bool, type(None), str, torch.dtype, torch.device))
"""Argument types that contain no references."""


class Step(NamedTuple):
    """One call: `call_function` of a callable, or `call_method` of a method name.

    Each `Ref` in the arguments, at any depth, refers to a value of the sample.
    """

    kind: str
    target: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclasses.dataclass(slots=True)
class Plan:
    """Inputs, calls and outputs of a graph, in terms of the sample's value indices.

    `placeholders` and `attributes` map value indices to names of arguments and module attributes.
    `dying` lists the values whose last use is each step. `checks` examine the operands of some
    steps before the call. `bodies` are the modules among the arguments by name. `loops` bound the
    work of the loops at some steps, and `own_loop` that of the loop whose body this is.
    """

    placeholders: Mapping[int, str]
    attributes: Mapping[int, str]
    steps: Sequence[Step]
    outputs: Any
    dying: Sequence[Sequence[int]]
    checks: SizeChecks | None = None
    bodies: Mapping[str, torch.fx.GraphModule] = dataclasses.field(default_factory=dict)
    loops: Mapping[int, LoopChecks] = dataclasses.field(default_factory=dict)
    own_loop: LoopChecks | None = None

    @property
    def modules(self) -> dict[str, torch.nn.Module]:
        """All modules that the graph calls or passes, by name."""
        modules: dict[str, torch.nn.Module] = dict(self.bodies)
        if self.checks is not None:
            modules[CHECKS_NAME] = self.checks
        modules |= {f"{LOOP_CHECKS_NAME}_{place}": loop for place, loop in self.loops.items()}
        if self.own_loop is not None:
            modules[LOOP_CHECKS_NAME] = self.own_loop
        return modules

    def make_graph(self) -> torch.fx.Graph:
        """Return the graph, with a node for each value in order and for each check."""
        graph = torch.fx.Graph()
        nodes: list[Any] = [None] * (len(self.placeholders) + len(self.attributes))
        for index, name in self.placeholders.items():
            nodes[index] = graph.create_node("placeholder", name, (), {}, name)
        for index, name in self.attributes.items():
            nodes[index] = graph.create_node("get_attr", name, (), {}, name)
        checked = self._checked()
        names = {id(body): name for name, body in self.bodies.items()}
        if self.own_loop is not None:
            graph.call_module(LOOP_CHECKS_NAME, (False,))
        for position, (kind, target, args, kwargs) in enumerate(self.steps):
            operands = fill(args, nodes), fill(dict(kwargs), nodes)
            if names:
                operands = pytree.tree_map_only(
                    torch.fx.GraphModule, lambda body: graph.get_attr(names[id(body)]), operands
                )
            if position in self.loops:
                graph.call_module(f"{LOOP_CHECKS_NAME}_{position}", (True,))
            if target is operator.pow and _is_negative(operands[0][0]):
                # fx prints `-2 ** x`, which Python parses as `-(2 ** x)`.
                base = graph.call_function(operator.neg, (-operands[0][0],))
                operands = (base, *operands[0][1:]), operands[1]
            if position in checked:
                graph.call_module(CHECKS_NAME, (position, *operands))
            # Passing operands to `create_node` would make torch search each of them for symbols.
            node = graph.create_node(kind, target)
            node.args, node.kwargs = operands
            nodes.append(node)
        graph.output(fill(self.outputs, nodes))
        return graph

    def run(self, values: list[Any]) -> Any:
        """Run the plan on the input values, in order, and return the outputs.

        The calls and their order match the printed code of the graph. Values are released after
        their last use, which clears entries of `values`.
        """
        checks, checked = self.checks, self._checked()
        for position, (kind, target, args, kwargs) in enumerate(self.steps):
            operands = [
                values[arg.index]
                if type(arg) is Ref
                else (arg if type(arg) in _LITERALS else fill(arg, values))
                for arg in args
            ]
            keywords = fill(kwargs, values) if kwargs else kwargs
            if checks is not None and position in checked:
                checks(position, tuple(operands), dict(keywords))
            if position in self.loops:
                self.loops[position](True)
            if kind == "call_method":
                values.append(getattr(operands[0], target)(*operands[1:], **keywords))
            else:
                values.append(target(*operands, **keywords))
            del operands, keywords
            for index in self.dying[position]:
                values[index] = None
        return fill(self.outputs, values)

    def _checked(self) -> frozenset[int]:
        return frozenset() if self.checks is None else frozenset(self.checks.positions)


def _is_negative(arg: Any) -> bool:
    return type(arg) in (int, float) and math.copysign(1.0, arg) < 0


def fill(arg: Any, values: Sequence[Any]) -> Any:
    """Return a copy of nested arguments with each reference replaced by its value.

    >>> fill((Ref(1), [slice(0, Ref(0))]), ("a", "b"))
    ('b', [slice(0, 'a', None)])
    """
    kind = type(arg)
    if kind is Ref:
        return values[arg.index]
    if kind is tuple:
        return tuple([fill(item, values) for item in arg])
    if kind is list:
        return [fill(item, values) for item in arg]
    if kind is dict:
        return {name: fill(item, values) for name, item in arg.items()}
    if kind is slice:
        return slice(fill(arg.start, values), fill(arg.stop, values), fill(arg.step, values))
    return arg


def bind(
    names: Mapping[int, str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[int, Any] | None:
    """Map value indices to the arguments of a call, or return None if they do not match the names.

    >>> bind({0: "input_0", 2: "input_1"}, (5,), {"input_1": 6})
    {0: 5, 2: 6}
    >>> bind({0: "input_0"}, (5,), {"input_0": 6}) is None
    True
    """
    if len(args) + len(kwargs) != len(names):
        return None
    rest = list(names.items())
    arguments = {index: arg for (index, _), arg in zip(rest, args, strict=False)}
    for index, name in rest[len(args) :]:
        if name not in kwargs:
            return None
        arguments[index] = kwargs[name]
    return arguments
