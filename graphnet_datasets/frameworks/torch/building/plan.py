"""The calls of a graph, resolved and checked, before `torch.fx` makes nodes and text of them.

Making a `torch.fx.Graph`, printing it and compiling what was printed takes several times as long as
all else that `materialize` does. A plan can be run once as it is, and says how to make the graph.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ....sample.arguments import Ref
from .run_checks import NAME as CHECKS_NAME
from .run_checks import SizeChecks

_LITERALS = frozenset((int, float, bool, type(None), str, torch.dtype, torch.device))
"""Types of arguments that hold no others; of these it is known at a glance."""


class Step(NamedTuple):
    """One call: `call_function` of a callable, or `call_method` of a name.

    A `Ref` in its arguments stands for a value of the sample, however deep it lies in them.
    """

    kind: str
    target: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclasses.dataclass(slots=True)
class Plan:
    """What a graph takes, calls and gives, by the numbers of the sample's values.

    `placeholders` and `attributes` are names by value: what a call is given, and what the module
    holds. `dying` are the values that nothing needs after each step. `checks` look at the operands
    of some steps before they are taken.
    """

    placeholders: Mapping[int, str]
    attributes: Mapping[int, str]
    steps: Sequence[Step]
    outputs: Any
    dying: Sequence[Sequence[int]]
    checks: SizeChecks | None = None

    def make_graph(self) -> torch.fx.Graph:
        """Return the graph: a node for each value in their order, and one for each check."""
        graph = torch.fx.Graph()
        nodes: list[Any] = [None] * (len(self.placeholders) + len(self.attributes))
        for index, name in self.placeholders.items():
            nodes[index] = graph.create_node("placeholder", name, (), {}, name)
        for index, name in self.attributes.items():
            nodes[index] = graph.create_node("get_attr", name, (), {}, name)
        checked = self._checked()
        for position, (kind, target, args, kwargs) in enumerate(self.steps):
            operands = fill(args, nodes), fill(dict(kwargs), nodes)
            if target is operator.pow and _is_negative(operands[0][0]):
                # fx prints `-2 ** x`, which Python reads as `-(2 ** x)`.
                base = graph.call_function(operator.neg, (-operands[0][0],))
                operands = (base, *operands[0][1:]), operands[1]
            if position in checked:
                graph.call_module(CHECKS_NAME, (position, *operands))
            # Of operands given at once torch looks at each, in search of symbols.
            node = graph.create_node(kind, target)
            node.args, node.kwargs = operands
            nodes.append(node)
        graph.output(fill(self.outputs, nodes))
        return graph

    def run(self, values: list[Any]) -> Any:
        """Return the outputs; `values` are those of the inputs in their order, which it forgets.

        The calls are those that the text of the graph makes, in the same order, and each value is
        let go of after its last use, as there.
        """
        checks, checked = self.checks, self._checked()
        for position, (kind, target, args, kwargs) in enumerate(self.steps):
            given = [
                values[arg.index]
                if type(arg) is Ref
                else (arg if type(arg) in _LITERALS else fill(arg, values))
                for arg in args
            ]
            named = fill(kwargs, values) if kwargs else kwargs
            if checks is not None and position in checked:
                checks(position, tuple(given), dict(named))
            if kind == "call_method":
                values.append(getattr(given[0], target)(*given[1:], **named))
            else:
                values.append(target(*given, **named))
            del given, named
            for index in self.dying[position]:
                values[index] = None
        return fill(self.outputs, values)

    def _checked(self) -> frozenset[int]:
        return frozenset() if self.checks is None else frozenset(self.checks.positions)


def _is_negative(arg: Any) -> bool:
    return type(arg) in (int, float) and math.copysign(1.0, arg) < 0


def fill(arg: Any, values: Sequence[Any]) -> Any:
    """Return new nested arguments with values in the places of references.

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
    """Return the arguments of a call by value, None where they do not fit the names.

    >>> bind({0: "input_0", 2: "input_1"}, (5,), {"input_1": 6})
    {0: 5, 2: 6}
    >>> bind({0: "input_0"}, (5,), {"input_0": 6}) is None
    True
    """
    if len(args) + len(kwargs) != len(names):
        return None
    rest = list(names.items())
    found = {index: arg for (index, _), arg in zip(rest, args, strict=False)}
    for index, name in rest[len(args) :]:
        if name not in kwargs:
            return None
        found[index] = kwargs[name]
    return found
