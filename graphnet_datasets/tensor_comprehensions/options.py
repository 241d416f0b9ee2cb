"""Options of a compilation: what the tuner varies and a user can set by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, Self

from ..errors import TensorComprehensionError

Fusion = Literal["max", "preserve3", "min"]
_FUSIONS = ("max", "preserve3", "min")
_PACKS = ("auto", "always", "never")
_COMPILERS = ("gcc", "clang")
_BACKENDS = ("tiles", "scalar")


@dataclasses.dataclass(frozen=True, slots=True)
class CudaOptions:
    """How a schedule is mapped to a GPU.

    Attributes:
        blocks, threads: extents of the grid and of a block, x first, 1 to 3 of each; a block has
            at most 1024 threads.
        use_shared, use_private: copies of what is read again in shared memory and in registers.
        unroll_copy_shared: whether copies to shared memory are unrolled.
        use_readonly_cache: whether inputs are read through `__ldg`.
        max_shared: bytes of shared memory to use, None for the device's.
        private_depth, shared_depth: below how many members of the band copies are made, None for
            all that are mapped.
    """

    blocks: tuple[int, ...] = (256, 256)
    threads: tuple[int, ...] = (32, 8)
    use_shared: bool = False
    use_private: bool = False
    unroll_copy_shared: bool = False
    use_readonly_cache: bool = False
    max_shared: int | None = None
    private_depth: int | None = None
    shared_depth: int | None = None

    def __post_init__(self) -> None:
        for name in ("blocks", "threads"):
            values = getattr(self, name)
            if not 1 <= len(values) <= 3 or any(each < 1 for each in values):
                raise _wrong(name, values, "1 to 3 whole numbers of at least 1")
        product = 1
        for each in self.threads:
            product *= each
        if product > 1024:
            raise _wrong("threads", self.threads, "a product of at most 1024")
        _check_range(self, "private_depth", 0, 10)
        _check_range(self, "shared_depth", 0, 7)
        _check_range(self, "max_shared", 0, 1 << 20)


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Options of a compilation. Every setter returns a changed copy, so they can be chained.

    >>> Options().with_tile(32, 32).with_unroll(4).with_micro(12, 2).tile
    (32, 32)

    Attributes:
        outer_fusion: which neighbouring nests share their outermost parallel loops: those whose
            common data then stays in a cache ("max"), only where all of it would not
            ("preserve3"), none ("min").
        intra_fusion: which neighbouring statements become one nest, where a bias or an activation
            is applied while the product still is in registers: all that keep one parallel loop
            ("max"), that keep their parallel loops or three of them ("preserve3"), none ("min").
        fix_parameters_before_scheduling, tile_imperfectly_nested, match_library_calls: of the
            paper's compiler; here sizes are always fixed first and no library is called, so they
            are kept for the sake of stored options and change nothing on a CPU.
        tile: sizes of tiles along the outermost loops, 0 for none. On a processor they are blocks
            of register tiles, rounded up to whole ones, that share what a cache holds and are
            shared out over threads; loops that every access walks as one count as one. On a GPU a
            block of threads has one, and one more size is of the terms between two copies. None:
            no blocks on a processor, 32 by 32 by 32 on a GPU.
        unroll: how often the innermost reduction is unrolled, 1 to 256.
        backend: "tiles" for register tiles in vector types, "scalar" for plain loops.
        parallel_depth: how many outermost loops are shared out over threads, None for enough.
        micro: at most so many rows, and so many vectors, in a register tile; None: by the model.
        k_block: terms of a product between two stores where its operand is packed.
        vector_index: the place of the output's index along which lanes run; None: by the model.
        pack: whether operands are packed: where it pays, where it can be done, or not at all.
        prefetch: how many terms ahead a gather is asked for; None: 8, 0 for never.
        threads: how many threads a kernel uses, None for torch's number, or all processors.
        compiler: gcc or clang.
        extra_flags: more flags, out of a closed list (see `codegen.toolchain.ALLOWED_FLAGS`).
        cuda: the mapping to a GPU.
    """

    outer_fusion: Fusion = "preserve3"
    intra_fusion: Fusion = "preserve3"
    fix_parameters_before_scheduling: bool = False
    tile_imperfectly_nested: bool = False
    match_library_calls: bool = False
    tile: tuple[int, ...] | None = None
    unroll: int = 1
    backend: Literal["tiles", "scalar"] = "tiles"
    parallel_depth: int | None = None
    micro: tuple[int, int] | None = None
    k_block: int = 512
    vector_index: int | None = None
    pack: Literal["auto", "always", "never"] = "auto"
    prefetch: int | None = None
    threads: int | None = None
    compiler: Literal["gcc", "clang"] = "gcc"
    extra_flags: tuple[str, ...] = ()
    cuda: CudaOptions = dataclasses.field(default_factory=CudaOptions)

    def __post_init__(self) -> None:
        for name, allowed in (
            ("outer_fusion", _FUSIONS),
            ("intra_fusion", _FUSIONS),
            ("pack", _PACKS),
            ("compiler", _COMPILERS),
            ("backend", _BACKENDS),
        ):
            if getattr(self, name) not in allowed:
                raise _wrong(name, getattr(self, name), f"one of {', '.join(allowed)}")
        tile = self.tile or ()
        if len(tile) > 16 or any(each < 0 for each in tile):
            raise _wrong("tile", self.tile, "at most 16 whole numbers, 0 for a loop left alone")
        _check_range(self, "unroll", 1, 256)
        _check_range(self, "k_block", 1, 1 << 20)
        _check_range(self, "parallel_depth", 0, 16)
        _check_range(self, "vector_index", 0, 15)
        _check_range(self, "prefetch", 0, 64)
        _check_range(self, "threads", 1, 4096)
        micro = self.micro
        if micro is not None and (len(micro) != 2 or not 1 <= micro[0] <= 32):
            raise _wrong("micro", micro, "(rows, vectors), rows from 1 to 32")
        if micro is not None and not 1 <= micro[1] <= 8:
            raise _wrong("micro", micro, "(rows, vectors), vectors from 1 to 8")

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values of the named options.

        Raises:
            TensorComprehensionError: a value is outside what the option allows.
        """
        unknown = set(changes) - {each.name for each in dataclasses.fields(self)}
        if unknown:
            raise TensorComprehensionError(
                f"There is no option `{sorted(unknown)[0]}`. The options are "
                f"{', '.join(each.name for each in dataclasses.fields(self))}."
            )
        return dataclasses.replace(self, **changes)

    def with_tile(self, *sizes: int) -> Self:
        """Set the sizes of tiles."""
        return self.replace(tile=tuple(sizes))

    def with_unroll(self, factor: int) -> Self:
        """Set how often the innermost reduction is unrolled."""
        return self.replace(unroll=factor)

    def with_fusion(self, outer: Fusion, intra: Fusion | None = None) -> Self:
        """Set the fusion of outermost loops, and of points if that is to differ."""
        return self.replace(outer_fusion=outer, intra_fusion=intra or outer)

    def with_micro(self, rows: int, vectors: int) -> Self:
        """Set the largest register tile."""
        return self.replace(micro=(rows, vectors))

    def with_threads(self, threads: int | None) -> Self:
        """Set the number of threads."""
        return self.replace(threads=threads)

    def with_cuda(self, **changes: Any) -> Self:
        """Set options of the mapping to a GPU."""
        return self.replace(cuda=dataclasses.replace(self.cuda, **changes))

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON can hold them."""
        return _plain(dataclasses.asdict(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the options that `to_dict` wrote; what is missing has its default.

        Raises:
            TensorComprehensionError: an option is unknown or has a value that it cannot have.
        """
        given = dict(values)
        cuda = given.pop("cuda", None)
        fields = {each.name: each for each in dataclasses.fields(cls)}
        for name, value in given.items():
            if name not in fields:
                raise TensorComprehensionError(
                    f"There is no option `{name}`; these options are of another version."
                )
            given[name] = _checked(name, value, getattr(cls(), name))
        if cuda is not None:
            known = {each.name for each in dataclasses.fields(CudaOptions)}
            if not isinstance(cuda, Mapping) or not set(cuda) <= known:
                raise _wrong("cuda", cuda, f"a mapping of {', '.join(sorted(known))}")
            defaults = CudaOptions()
            cuda = {
                name: _checked(name, value, getattr(defaults, name)) for name, value in cuda.items()
            }
            given["cuda"] = CudaOptions(**cuda)
        return cls(**given)


_OPTIONAL_TUPLES = ("micro", "tile")


def _checked(name: str, value: Any, default: Any) -> Any:
    """Return a value from stored options in the type of its option."""
    if isinstance(default, tuple) or (name in _OPTIONAL_TUPLES and value is not None):
        items = value if isinstance(value, list | tuple) else [value]
        kind = str if name == "extra_flags" else int
        if not all(type(each) is kind for each in items):
            raise _wrong(name, value, f"a list of {'texts' if kind is str else 'whole numbers'}")
        return tuple(items)
    kinds = (type(default),) if default is not None else (int, type(None))
    if type(value) not in kinds:
        raise _wrong(name, value, f"of type {' or '.join(each.__name__ for each in kinds)}")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _check_range(options: Any, name: str, least: int, greatest: int) -> None:
    value = getattr(options, name)
    if value is not None and not least <= value <= greatest:
        raise _wrong(name, value, f"from {least} to {greatest}")


def _wrong(name: str, value: object, allowed: str) -> TensorComprehensionError:
    return TensorComprehensionError(f"The option `{name}` is {value!r}; it has to be {allowed}.")
