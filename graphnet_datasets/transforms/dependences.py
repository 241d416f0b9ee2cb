"""Dependences between the operators of a sample, and convexity of sets of operators.

An operator depends on the operators that compute its arguments, and on preceding writes to the
memory of its arguments. A write also depends on preceding reads of the overwritten memory, and a
random operator on the preceding random operator. Operators that only switch a framework mode
(autocast, grad mode) are not dependences: a cut includes them with the operators they enclose
(`frameworks.find_regions`).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ..analysis.effects import effect_kinds, memory_classes
from ..sample import Sample
from ..sample.arguments import iterate_refs


def find_dependences(sample: Sample) -> tuple[frozenset[int], ...]:
    """Return, for each operator, the preceding operators it directly depends on.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> sample = Sample("example/written", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),),
    ...     (Op("torch.exp", (Ref(0),)), Op("torch.Tensor.add_", (Ref(0), 1)),
    ...      Op("torch.relu", (Ref(0),))), (Ref(1), Ref(3)))
    >>> [sorted(positions) for positions in find_dependences(sample)]
    [[], [0], [1]]
    """
    num_inputs = len(sample.inputs)
    kinds = effect_kinds(sample)
    writers: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    memory = memory_classes(sample) if any("w" in kind for kind in kinds) else None
    last_random: int | None = None
    dependences = []
    for position, (op, kind) in enumerate(zip(sample.ops, kinds, strict=True)):
        refs = set(iterate_refs((op.args, op.kwargs)))
        operator_dependences = {ref - num_inputs for ref in refs if ref >= num_inputs}
        if memory is not None:
            # All arguments of a writing operator count as written: an unnecessary dependence is
            # harmless, and few operators write at all.
            touched = {memory[ref] for ref in refs}
            operator_dependences |= {
                writers[memory_class] for memory_class in touched if memory_class in writers
            }
            if "w" in kind:
                for memory_class in touched:
                    operator_dependences.update(readers.pop(memory_class, ()))
                    writers[memory_class] = position
            else:
                for memory_class in touched:
                    readers.setdefault(memory_class, []).append(position)
        if "r" in kind:
            operator_dependences |= {last_random} if last_random is not None else set()
            last_random = position
        dependences.append(frozenset(operator_dependences - {position}))
    return tuple(dependences)


def find_detour(
    dependences: tuple[frozenset[int], ...], selected: AbstractSet[int]
) -> tuple[int, int, int] | None:
    """Return operators (a, b, c) with a and c selected, b depending on a, and c on b; else None.

    None means that the selected operators are convex: they can run in sequence without any other
    operator in between.

    >>> find_detour((frozenset(), frozenset({0}), frozenset({1})), {0, 2})
    (0, 1, 2)
    >>> find_detour((frozenset(), frozenset({0}), frozenset({1})), {0, 1}) is None
    True
    """
    if not selected:
        return None
    start_of: dict[int, int] = {}  # selected operators that unselected operators depend on
    for position in range(min(selected), max(selected) + 1):
        waits_for = dependences[position]
        if position in selected:
            for middle in sorted(waits_for):
                if middle in start_of:
                    return start_of[middle], middle, position
            continue
        for before in sorted(waits_for):
            if before in selected or before in start_of:
                start_of[position] = start_of.get(before, before)
                break
    return None
