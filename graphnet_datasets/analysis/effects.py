"""Dependencies of operators beyond their arguments: memory writes, random state and modes.

An in-place operator changes the values that later operators read from the same memory through any
alias. A random operator advances the generator. A state operator (autocast, grad mode, vmap)
changes how later operators run. Two operators may be swapped only if neither depends on the other
through an argument or one of these effects.
"""

from __future__ import annotations

import dataclasses
import functools

from ..errors import SampleError, UnknownOperatorError, raises_only
from ..frameworks import module
from ..operators import OperatorNames
from ..sample import Op, Sample
from ..sample.arguments import iterate_refs
from ..sample.targets import base_name

NO_COMPUTATION = frozenset(
    {
        "torch._C._log_api_usage_once",
        "torch._functorch.predispatch.lazy_load_decompositions",
    }
)
"""Calls in traces that compute nothing and do not affect later operators."""

_SHARING = OperatorNames("shares")

_SHARING_ALL = OperatorNames("shares_all")


@dataclasses.dataclass(frozen=True, slots=True)
class Effects:
    """The earlier operators whose effects each operator sees.

    `seen[i]` lists them for operator `i`: writes to the memory of its arguments in argument order,
    then the previous random operator if it is random, then the previous state operator.
    `seen_by_outputs` lists the writes that reach the memory of the outputs.
    """

    seen: tuple[tuple[int, ...], ...]
    seen_by_outputs: tuple[int, ...]


@raises_only(SampleError)
def find_effects(sample: Sample) -> Effects:
    """Return the dependencies of each operator beyond its arguments.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Value
    >>> sample = Sample("example/inplace", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),),
    ...     ops=(Op("torch.Tensor.add_", (Ref(0), 1)), Op("torch.relu", (Ref(0),))),
    ...     outputs=Ref(2))
    >>> find_effects(sample).seen
    ((), (0,))
    """
    kinds = effect_kinds(sample)
    if not any(kinds):
        return Effects(((),) * sample.num_ops, ())
    num_inputs = len(sample.inputs)
    memory = _find_memory(sample, kinds)
    last_write: dict[int, int] = {}
    last_random = last_state = -1
    seen = []
    for position, (op, kind) in enumerate(zip(sample.ops, kinds, strict=True)):
        own = [
            last_write[memory[ref]]
            for ref in iterate_refs((op.args, op.kwargs))
            if memory[ref] in last_write and ref != num_inputs + last_write[memory[ref]]
        ]
        if "r" in kind:
            own += [last_random] * (last_random >= 0)
            last_random = position
        own += [last_state] * (last_state >= 0)
        if "s" in kind:
            last_state = position
        seen.append(tuple(dict.fromkeys(own)))
        if "w" in kind:
            last_write.update((memory[ref], position) for ref in written_values(op))
    final = [
        last_write[memory[ref]] for ref in iterate_refs(sample.outputs) if memory[ref] in last_write
    ]
    return Effects(tuple(seen), tuple(dict.fromkeys(final)))


def memory_classes(sample: Sample) -> list[int]:
    """Return a number for each value; values that may share memory have the same number.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Value
    >>> sample = Sample("example/view", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),),
    ...     ops=(Op("torch.Tensor.view", (Ref(0), 1, 2)), Op("torch.relu", (Ref(1),))),
    ...     outputs=Ref(2))
    >>> memory_classes(sample)
    [1, 1, 2]
    """
    return _find_memory(sample, effect_kinds(sample))


def effect_kinds(sample: Sample) -> tuple[str, ...]:
    """Return the letters of `classify` for each operator of a sample.

    A custom operator writes as its schema declares and is assumed to have no other effect. An
    operator with bodies is random if a body is, and writes if a body writes to its inputs.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Value
    >>> sample = Sample("example/noise", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),),
    ...     ops=(Op("torch.rand_like", (Ref(0),)), Op("torch.Tensor.add_", (Ref(0), Ref(1)))),
    ...     outputs=Ref(2))
    >>> effect_kinds(sample)
    ('r', 'w')
    """
    customs = sample.custom_operators_by_target
    classify_once = functools.cache(lambda op: classify(sample.framework, op))
    kinds = [
        "w" * ("!" in custom.schema)
        if (custom := customs.get(op.target)) is not None
        else classify_once(op)
        for op in sample.ops
    ]
    for position, bodies in sample.bodies.items():
        letters = "".join(map(_body_kind, bodies))
        kinds[position] = "w" * ("w" in letters) + "r" * ("r" in letters)
    return tuple(kinds)


def _body_kind(body: Sample) -> str:
    """Return the letters w and r that apply to a call of a body."""
    kinds = effect_kinds(body)
    memory = _find_memory(body, kinds)
    outer = set(memory[: len(body.inputs)])
    writes = any(
        "w" in kind and outer.intersection(memory[ref] for ref in written_values(op))
        for op, kind in zip(body.ops, kinds, strict=True)
    )
    return "w" * writes + "r" * any("r" in kind for kind in kinds)


def classify(framework: str, op: Op) -> str:
    """Return the letters w (writes), r (random) and s (state) that apply to an operator."""
    table = module(framework, "operators")
    try:
        kind = "w" * table.mutates(op) + "r" * table.draws_random_numbers(op)
        is_state = table.lookup(op.target).is_state and op.target not in NO_COMPUTATION
        return kind + "s" * is_state
    except UnknownOperatorError:
        return "w" * (op.target.endswith("_") and not op.target.endswith("__"))


def written_values(op: Op) -> list[int]:
    """Return the values that a writing operator may write to.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> written_values(Op("torch.Tensor.add_", (Ref(0), Ref(1))))
    [0]
    """
    for key, arg in op.kwargs:
        if key == "out" and arg is not None:
            return list(iterate_refs(arg))
    name = base_name(op.target)
    if _is_norm(name):
        return list(iterate_refs((op.args[1:5], op.kwargs)))
    if op.args and (name.endswith("_") or op.target.startswith("operator.")):
        return list(iterate_refs(op.args[0]))
    return list(iterate_refs((op.args, op.kwargs)))


def _is_norm(name: str) -> bool:
    """Return whether an operator updates running statistics and returns a new tensor."""
    return "batch_norm" in name or "instance_norm" in name


def _find_memory(sample: Sample, kinds: tuple[str, ...]) -> list[int]:
    """Return a number for each value, equal for values that may share memory."""
    num_inputs = len(sample.inputs)
    parent = list(range(num_inputs + sample.num_ops))

    def root(value: int) -> int:
        while parent[value] != value:
            parent[value] = parent[parent[value]]
            value = parent[value]
        return value

    for position, op in enumerate(sample.ops):
        name = base_name(op.target)
        if "w" in kinds[position]:
            shared = [] if _is_norm(name) else written_values(op)
        elif position in sample.bodies:  # a body may return its inputs
            shared = list(iterate_refs((op.args, op.kwargs)))
        elif name in _SHARING:
            shared = list(iterate_refs((op.args, op.kwargs)))
            if name not in _SHARING_ALL:
                shared = shared[:1]
        else:
            continue
        for ref in shared:
            parent[root(ref)] = root(num_inputs + position)
    return [root(value) for value in range(len(parent))]
