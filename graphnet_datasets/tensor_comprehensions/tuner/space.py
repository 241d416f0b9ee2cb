"""Search space of the options for one instance."""

from __future__ import annotations

import dataclasses
import operator
import random
from collections.abc import Mapping
from typing import Any

from ..language.instance import Instance, InstanceStatement
from ..options import Options


@dataclasses.dataclass(frozen=True, slots=True)
class Space:
    """Values of each searched option, with the default first."""

    parameters: tuple[tuple[str, tuple[Any, ...]], ...]

    def draw(self, generator: random.Random, start: Options) -> Options:
        """Draw a value for every parameter; other options are taken from `start`."""
        drawn = {name: generator.choice(values) for name, values in self.parameters}
        return _changed(start, drawn)

    def mutate(self, generator: random.Random, options: Options, rate: float) -> Options:
        """Redraw each parameter with probability `rate`."""
        changed = {
            name: generator.choice(values)
            for name, values in self.parameters
            if generator.random() < rate
        }
        return _changed(options, changed)

    def cross(self, generator: random.Random, parents: list[Options]) -> Options:
        """Take each parameter from a random parent."""
        mixed = {
            name: operator.attrgetter(name)(generator.choice(parents))
            for name, _ in self.parameters
        }
        return _changed(parents[0], mixed)


def _changed(options: Options, values: Mapping[str, Any]) -> Options:
    """Return options with other values; `triton.split` names an option of Triton."""
    prefix = "triton."
    plain = {name: value for name, value in values.items() if not name.startswith(prefix)}
    triton = {
        name.removeprefix(prefix): value
        for name, value in values.items()
        if name.startswith(prefix)
    }
    changed = options.replace(**plain)
    return changed.with_triton(**triton) if triton else changed


def space_of(instance: Instance) -> Space:
    """Return the search space of a CPU kernel.

    Options without effect are omitted: prefetching requires a gather, blocks of terms a product.
    """
    statements = instance.statements
    rank = max((len(statement.subscripts) for statement in statements), default=0)
    has_reduction = any(statement.reductions for statement in statements)
    has_gather = any(
        not hasattr(subscript, "coefficients")
        for statement in statements
        for load in statement.loads
        for subscript in load.subscripts
    )
    rows = (4, 6, 8, 12, 14, 16, 28)
    micro = (None, *((row, width) for row in rows for width in (1, 2, 3, 4)))
    parameters: list[tuple[str, tuple[Any, ...]]] = [
        ("micro", micro),
        ("vector_index", (None, *range(min(rank, 6)))),
        ("parallel_depth", (None, 1, 2)),
        ("extra_flags", ((), ("-O3",), ("-fno-schedule-insns2",))),
    ]
    sizes = [size for size in tile_values(instance) if 8 <= size <= 1024]
    tiles = [(size,) for size in sizes]
    if rank > 1:
        tiles += [(outer, inner) for outer in (0, *sizes[::2]) for inner in sizes[::2]]
    # Half of the values have no blocks.
    parameters.append(("tile", (None,) * len(tiles) + tuple(tiles)))
    if len(statements) > 1:
        parameters.append(("intra_fusion", ("preserve3", "max", "min")))
        parameters.append(("outer_fusion", ("preserve3", "max", "min")))
    if has_reduction:
        parameters += [
            ("k_block", (512, 128, 256, 1024, 4096)),
            ("pack", ("auto", "always", "never")),
            ("unroll", (1, 2, 4, 8)),
        ]
    if has_gather:
        parameters.append(("prefetch", (None, 0, 4, 16)))
    return Space(tuple(parameters))


def triton_space_of(instance: Instance) -> Space:
    """Return the search space of a kernel of Triton.

    >>> from graphnet_datasets.tensor_comprehensions.language import check, instantiate
    >>> f = check("def f(float(N) A) -> (B) { B(i) = A(i) }")[0]
    >>> [name for name, _ in triton_space_of(instantiate(f, [(6,)])).parameters]
    ['triton.num_warps', 'triton.pointwise']
    """
    statements = instance.statements
    parameters: list[tuple[str, tuple[Any, ...]]] = [("triton.num_warps", (None, 1, 2, 4, 8, 16))]
    if any(not statement.reductions for statement in statements):
        parameters.append(("triton.pointwise", (None, 128, 256, 512, 1024, 2048, 4096)))
    if any(statement.reductions for statement in statements):
        products = [
            (rows, columns, terms)
            for rows in (16, 32, 64, 128, 256)
            for columns in (16, 32, 64, 128, 256)
            for terms in (16, 32, 64, 128)
            if rows * columns <= 128 * 256 and (rows + columns) * terms <= 1 << 15
        ]
        reductions = [
            (points, terms)
            for points in (1, 2, 4, 8, 16, 32, 64, 128, 256)
            for terms in (1, 16, 64, 256, 1024, 2048, 4096, 8192)
            if 32 <= points * terms <= 1 << 14
        ]
        parameters += [
            ("triton.product", (None, *products)),
            ("triton.reduction", (None, *reductions)),
            ("triton.split", (None, 1, 2, 4, 8, 16, 32)),
            ("triton.num_stages", (None, 1, 2, 3, 4, 5)),
        ]
    if any(_is_guarded(statement) for statement in statements):
        parameters.append(("triton.split_guards", (False, True)))
    if len(statements) > 1:
        parameters.append(("intra_fusion", ("preserve3", "max", "min")))
    return Space(tuple(parameters))


def _is_guarded(statement: InstanceStatement) -> bool:
    """Return whether a statement reads under a condition that excludes points out of range."""
    return any(load.is_guarded for load in statement.loads)


def tile_values(instance: Instance) -> tuple[int, ...]:
    """Return useful tile sizes: halves of each input size and of 256, and powers of 2.

    >>> from graphnet_datasets.tensor_comprehensions.language import check, instantiate
    >>> f = check("def f(float(N) A) -> (B) { B(i) = A(i) }")[0]
    >>> tile_values(instantiate(f, [(6,)]))[:8]
    (1, 2, 3, 4, 6, 8, 16, 32)
    """
    sizes = {256} | {size for tensor in instance.inputs for size in tensor.shape if size}
    values: set[int] = set()
    for size in sizes:
        part = size
        while part > 1:
            values.add(part)
            part = -(-part // 2)
        power = 1
        while power <= size:
            values.add(power)
            power *= 2
    return tuple(sorted(values))
