"""Candidate dimensions of a graph's data inputs that may vary, before the graph is walked.

Every dimension except channels is a candidate, and dimensions of equal size vary together. The name
of a dimension depends on the rank and dtype of its inputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal, TypeAlias

from ...inputs import find_roles
from ...inputs.terms import is_whole
from ...sample import Input, Sample
from ...sample.symbols import free_symbols

DimensionKind: TypeAlias = Literal["batch", "sequence", "spatial"]

_IMAGE_RANKS = (4, 5)
_FEW_CHANNELS = 4
"""Largest number of channels in images whose channels are the last dimension."""
_MAX_SEQUENCES = 6


@dataclasses.dataclass(frozen=True)
class Dimension:
    """A candidate: a name, the size at the capture, and its positions.

    `places` are triples of an input, an axis and an offset added to the size.
    """

    name: str
    kind: DimensionKind
    hint: int
    places: tuple[tuple[int, int, int], ...]

    def only(self, inputs: frozenset[int]) -> Dimension:
        """Return the dimension restricted to the given inputs."""
        places = tuple(place for place in self.places if place[0] in inputs)
        return dataclasses.replace(self, places=places)


def find_dimensions(sample: Sample) -> tuple[Dimension, ...]:
    """Return the candidates: batch, height and width, then sequences; names are unused.

    >>> from graphnet_datasets.sample import Value
    >>> tokens, mask = Value("int64", (2, 16)), Value("float32", (2, 1, 16, 16))
    >>> [(dim.name, dim.hint, len(dim.places)) for dim in find_dimensions(Sample(
    ...     "example/tokens", "torch", "nlp", (Input("input", tokens), Input("input", mask)),
    ...     (), ()))]
    [('batch', 2, 2), ('sequence', 16, 3)]
    """
    return tuple(_Finder(sample).find())


def kind_of_symbol(sample: Sample, name: str) -> DimensionKind:
    """Return the kind of dimension of a symbol, by its position in the inputs."""
    for dimension in ("batch", "height", "width", "size"):
        if name == dimension:
            return "batch" if dimension == "batch" else "spatial"
    for input_value in sample.inputs:
        for axis, dim in enumerate(input_value.value.shape or ()):
            if isinstance(dim, str) and name in free_symbols(dim):
                if axis == 0:
                    return "batch"
                return "spatial" if _is_image(input_value) and axis >= 2 else "sequence"
    return "sequence"


def _is_image(input_value: Input) -> bool:
    rank = len(input_value.value.shape or ())
    return (
        rank in _IMAGE_RANKS
        and not is_whole(input_value.value.dtype or "")
        and input_value.role == "input"
    )


class _Finder:
    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.taken: set[tuple[int, int]] = set()
        self.names = {symbol.name for symbol in sample.symbols}
        self.shapes = {
            index: value_input.value.shape
            for index, value_input in enumerate(sample.inputs)
            if value_input.role == "input" and value_input.value.shape
        }

    def find(self) -> Iterator[Dimension]:
        roles = find_roles(self.sample)
        for index, shape in self.shapes.items():
            if index in roles and roles[index].kind == "edges":
                self.taken.add((index, 0))  # where edges begin, and where they end
            for axis, dim in enumerate(shape):
                if isinstance(dim, str):  # of a symbol that the sample has already
                    self.taken.add((index, axis))
        batch = self._batch()
        if batch is not None:
            yield batch
        caches = self._caches()
        lengths = {
            shape[1]
            for index, shape in self.shapes.items()
            if len(shape) == 2 and is_whole(self.sample.inputs[index].value.dtype or "")
        }
        images = [
            index
            for index, shape in self.shapes.items()
            if _is_image(self.sample.inputs[index])
            and index not in caches
            and shape[-1] not in lengths  # a mask of tokens
        ]
        if caches:
            yield from self._past(caches)
        if images:
            yield from self._sides(images)
        yield from self._sequences(images)

    def _dimension(
        self, name: str, kind: DimensionKind, hint: int, places: list[tuple[int, int, int]]
    ) -> Dimension:
        base, count = name, 1
        while name in self.names:
            count += 1
            name = f"{base}_{count}"
        self.names.add(name)
        self.taken.update((index, axis) for index, axis, _ in places)
        return Dimension(name, kind, hint, tuple(places))

    def _free(self, index: int, axis: int) -> int | None:
        shape = self.shapes[index]
        dim = shape[axis]
        return dim if isinstance(dim, int) and (index, axis) not in self.taken else None

    def _batch(self) -> Dimension | None:
        free = [index for index in self.shapes if self._free(index, 0) is not None]
        first = next((index for index in free if len(self.shapes[index]) >= 2), None)
        first = next(iter(free), None) if first is None else first
        if first is None:
            return None
        hint = self._free(first, 0)
        if hint is None or hint < 1:
            return None
        places = [(index, 0, 0) for index in self.shapes if self._free(index, 0) == hint]
        return self._dimension("batch", "batch", hint, places)

    def _caches(self) -> list[int]:
        """Return the inputs that are keys and values of earlier tokens: several of equal shape."""
        ranked = [i for i, shape in self.shapes.items() if len(shape) == 4]
        is_text = any(
            is_whole(self.sample.inputs[i].value.dtype or "") and len(shape) == 2
            for i, shape in self.shapes.items()
        )
        shapes = [self.shapes[index] for index in ranked]
        return [i for i in ranked if is_text and shapes.count(self.shapes[i]) >= 2]

    def _past(self, caches: list[int]) -> Iterator[Dimension]:
        hint = self._free(caches[0], 2)
        if hint is None or hint < 2:
            return
        places = [(index, 2, 0) for index in caches if self._free(index, 2) == hint]
        for index, shape in self.shapes.items():
            for axis in range(1, len(shape)):
                if index not in caches and self._free(index, axis) in (hint, hint + 1):
                    places.append((index, axis, (self._free(index, axis) or hint) - hint))
        yield self._dimension("past", "sequence", hint, places)

    def _sides(self, images: list[int]) -> Iterator[Dimension]:
        shape = self.shapes[images[0]]
        rank = len(shape)
        last = shape[-1]
        channels_last = isinstance(last, int) and last <= _FEW_CHANNELS and last != shape[-2]
        sides = (rank - 3, rank - 2) if channels_last else (rank - 2, rank - 1)
        for name, axis in zip(("height", "width"), sides, strict=True):
            hint = self._free(images[0], axis)
            if hint is None or hint < 2:
                continue
            places = []
            for index, other in self.shapes.items():
                from_end = len(other) - (rank - axis)
                same_rank = index in images or len(other) in (3, *_IMAGE_RANKS)
                if same_rank and from_end >= 1 and self._free(index, from_end) == hint:
                    places.append((index, from_end, 0))
            yield self._dimension(name, "spatial", hint, places)

    def _sequences(self, images: list[int]) -> Iterator[Dimension]:
        for _ in range(_MAX_SEQUENCES):
            hint = next((size for size in self._sizes(images) if size > 1), None)
            if hint is None:
                return
            places = [
                (index, axis, 0)
                for index, shape in self.shapes.items()
                for axis in range(1, len(shape))
                if self._free(index, axis) == hint and (index not in images or len(shape) == 5)
            ]
            yield self._dimension("sequence", "sequence", hint, places)

    def _sizes(self, images: list[int]) -> Iterator[int]:
        """Yield sizes of unused axes: of tokens first, then in the order of the inputs."""
        tokens = [i for i in self.shapes if is_whole(self.sample.inputs[i].value.dtype or "")]
        for index in (*tokens, *self.shapes):
            shape = self.shapes[index]
            if index in images and len(shape) != 5:
                continue
            for axis in range(1, len(shape)):
                size = self._free(index, axis)
                if size is not None and (index not in images or size > _FEW_CHANNELS):
                    yield size
