"""What each operator of a sample has to wait for, and whether a set of operators is convex.

An operator waits for those that make its arguments; for writes to the memory of its arguments that
stand before it in the graph; if it writes, for the earlier readers of what it overwrites; if it is
random, for the random operator before it. Operators that only switch a mode of their framework
(autocast, grad mode) are not waited for: a cut takes them along with what they enclose
(`frameworks.find_regions`).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ..analysis.effects import effect_kinds, memory_classes
from ..sample import Sample
from ..sample.arguments import iterate_refs


def find_dependences(sample: Sample) -> tuple[frozenset[int], ...]:
    """Return for each operator the operators directly before it that it has to wait for.

    >>> from graphnet_datasets.sample import Input, Op, Value
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> sample = Sample("example/written", "torch", "other",
    ...     (Input("input", Value("float32", (2,))),),
    ...     (Op("torch.exp", (Ref(0),)), Op("torch.Tensor.add_", (Ref(0), 1)),
    ...      Op("torch.relu", (Ref(0),))), (Ref(1), Ref(3)))
    >>> [sorted(each) for each in find_dependences(sample)]
    [[], [0], [1]]
    """
    num_inputs = len(sample.inputs)
    kinds = effect_kinds(sample)
    writers: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    memory = memory_classes(sample) if any("w" in kind for kind in kinds) else None
    last_random: int | None = None
    found = []
    for position, (op, kind) in enumerate(zip(sample.ops, kinds, strict=True)):
        refs = set(iterate_refs((op.args, op.kwargs)))
        own = {ref - num_inputs for ref in refs if ref >= num_inputs}
        if memory is not None:
            # Which arguments an operator writes to is not told apart here: to wait too long is
            # harmless, and few operators write at all.
            touched = {memory[ref] for ref in refs}
            own |= {writers[each] for each in touched if each in writers}
            if "w" in kind:
                for each in touched:
                    own.update(readers.pop(each, ()))
                    writers[each] = position
            else:
                for each in touched:
                    readers.setdefault(each, []).append(position)
        if "r" in kind:
            own |= {last_random} if last_random is not None else set()
            last_random = position
        found.append(frozenset(own - {position}))
    return tuple(found)


def find_detour(
    dependences: tuple[frozenset[int], ...], chosen: AbstractSet[int]
) -> tuple[int, int, int] | None:
    """Return operators (a, b, c), a and c chosen, where c waits for b and b for a, or None.

    None means that the chosen operators are convex: they can run one after the other without
    anything else in between.

    >>> find_detour((frozenset(), frozenset({0}), frozenset({1})), {0, 2})
    (0, 1, 2)
    >>> find_detour((frozenset(), frozenset({0}), frozenset({1})), {0, 1}) is None
    True
    """
    if not chosen:
        return None
    start_of: dict[int, int] = {}  # operators outside that wait for a chosen one, and for which
    for position in range(min(chosen), max(chosen) + 1):
        waits_for = dependences[position]
        if position in chosen:
            for middle in sorted(waits_for):
                if middle in start_of:
                    return start_of[middle], middle, position
            continue
        for before in sorted(waits_for):
            if before in chosen or before in start_of:
                start_of[position] = start_of.get(before, before)
                break
    return None
