"""The operator sequence that defines a family, in canonical order and with repeats collapsed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from ..sample import Sample
from ..sample.arguments import iterate_refs
from .effects import Effects


def order_operators(sample: Sample, effects: Effects) -> list[int]:
    """Return the positions of all operators in an order determined by the structure alone.

    Operators follow their dependencies, visited depth first from the outputs and left to right, so
    that the operators of one layer are adjacent. Operators that the outputs do not depend on come
    last, ordered by their names and the names of their dependencies.
    """
    num_inputs = len(sample.inputs)
    operands: list[list[int]] = []
    for position, op in enumerate(sample.ops):
        own = [
            ref - num_inputs
            for ref in iterate_refs((op.args, sorted_keywords(op.kwargs)))
            if ref >= num_inputs
        ]
        operands.append([*own, *effects.seen[position]])
    roots = [ref - num_inputs for ref in iterate_refs(sample.outputs) if ref >= num_inputs]
    order: list[int] = []
    is_visited = [False] * sample.num_ops
    _visit([*roots, *effects.seen_by_outputs], operands, is_visited, order)
    if len(order) < sample.num_ops:
        unreached = [position for position, visited in enumerate(is_visited) if not visited]
        used = {operand for position in unreached for operand in operands[position]}
        names = _name_hashes(sample, operands)
        ends = sorted(
            (position for position in unreached if position not in used),
            key=names.__getitem__,
        )
        _visit(ends, operands, is_visited, order)
    return order


def sorted_keywords(kwargs: tuple[tuple[str, object], ...]) -> tuple[tuple[str, object], ...]:
    """Return keyword arguments sorted by name, as in all hashes."""
    return tuple(sorted(kwargs, key=lambda pair: pair[0]))


def _visit(
    roots: Sequence[int], operands: list[list[int]], is_visited: list[bool], order: list[int]
) -> None:
    """Append `roots` and all their dependencies to `order`, depth first."""
    for root in roots:
        if is_visited[root]:
            continue
        is_visited[root] = True
        pending = [(root, iter(operands[root]))]
        while pending:
            position, rest = pending[-1]
            for operand in rest:
                if not is_visited[operand]:
                    is_visited[operand] = True
                    pending.append((operand, iter(operands[operand])))
                    break
            else:
                order.append(position)
                pending.pop()


def _name_hashes(sample: Sample, operands: list[list[int]]) -> list[bytes]:
    hashes: list[bytes] = []
    for op, own in zip(sample.ops, operands, strict=True):
        text = op.target.encode() + b" " + b"".join([hashes[operand] for operand in own])
        hashes.append(hashlib.blake2b(text, digest_size=16).digest())
    return hashes


def collapse_repeats(names: Sequence[str]) -> list[str]:
    """Collapse each run of consecutive equal blocks to one block.

    Shorter blocks are collapsed first, from the left, until no block repeats.

    >>> collapse_repeats(["embed", "norm", "relu", "norm", "relu", "relu", "head"])
    ['embed', 'norm', 'relu', 'head']
    """
    numbers: dict[str, int] = {}
    sequence = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
    length = 1
    while length <= len(sequence) // 2:
        shorter = _collapse(sequence, length)
        if len(shorter) < len(sequence):
            sequence, length = shorter, 1
        else:
            length += 1
    words = list(numbers)
    return [words[number] for number in sequence]


def _collapse(sequence: np.ndarray, length: int) -> np.ndarray:
    """Remove consecutive repeats of blocks of `length`, keeping the first copy."""
    is_equal = sequence[:-length] == sequence[length:]
    if np.count_nonzero(is_equal) < length:
        return sequence
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_equal, [False])).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    keep = np.ones(len(sequence), bool)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        copies = (end - start) // length
        keep[start + length : start + length + copies * length] = False
    return sequence[keep]
