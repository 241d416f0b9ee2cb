"""The values that options may take for one instance."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from ..language.instance import Instance
from ..options import Options


@dataclasses.dataclass(frozen=True, slots=True)
class Space:
    """For each option that is searched, the values that are tried, the default first."""

    parameters: tuple[tuple[str, tuple[Any, ...]], ...]

    def draw(self, generator: random.Random, start: Options) -> Options:
        """Return options with every parameter drawn, the others as in `start`."""
        drawn = {name: generator.choice(values) for name, values in self.parameters}
        return start.replace(**drawn)

    def mutate(self, generator: random.Random, options: Options, rate: float) -> Options:
        """Return options with each parameter drawn anew with the given probability."""
        changed = {
            name: generator.choice(values)
            for name, values in self.parameters
            if generator.random() < rate
        }
        return options.replace(**changed)

    def cross(self, generator: random.Random, parents: list[Options]) -> Options:
        """Return options of which each parameter is one of the parents'."""
        mixed = {name: getattr(generator.choice(parents), name) for name, _ in self.parameters}
        return parents[0].replace(**mixed)


def space_of(instance: Instance) -> Space:
    """Return the space of options of a kernel for the processor.

    Options that cannot matter are left out: a prefetch needs a gather, a block of terms a product.
    """
    statements = instance.statements
    rank = max((len(each.subscripts) for each in statements), default=0)
    has_reduction = any(each.reductions for each in statements)
    has_gather = any(
        not hasattr(subscript, "coefficients")
        for each in statements
        for load in each.loads
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
    sizes = [each for each in tile_values(instance) if 8 <= each <= 1024]
    tiles = [(each,) for each in sizes]
    if rank > 1:
        tiles += [(one, two) for one in (0, *sizes[::2]) for two in sizes[::2]]
    # Half of what is drawn has no blocks.
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


def tile_values(instance: Instance) -> tuple[int, ...]:
    """Return the tile sizes worth trying: of each input size and 256 its halves and powers of 2.

    >>> from graphnet_datasets.tensor_comprehensions.language import check, instantiate
    >>> f = check("def f(float(N) A) -> (B) { B(i) = A(i) }")[0]
    >>> tile_values(instantiate(f, [(6,)]))[:8]
    (1, 2, 3, 4, 6, 8, 16, 32)
    """
    sizes = {256} | {size for each in instance.inputs for size in each.shape if size}
    found: set[int] = set()
    for size in sizes:
        part = size
        while part > 1:
            found.add(part)
            part = -(-part // 2)
        power = 1
        while power <= size:
            found.add(power)
            power *= 2
    return tuple(sorted(found))
