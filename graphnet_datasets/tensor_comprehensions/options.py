"""Compile options, set by hand or searched by the tuner."""

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
_GPUS = ("nvrtc", "triton")
_PRECISIONS = ("ieee", "tf32", "tf32x3")
_REMOVED = {"fix_parameters_before_scheduling", "tile_imperfectly_nested", "match_library_calls"}
"""Options without effect that were stored by earlier versions."""


@dataclasses.dataclass(frozen=True, slots=True)
class CudaOptions:
    """Mapping of a schedule to a GPU.

    Attributes:
        blocks, threads: extents of the grid and of a block, x first, 1 to 3 values each. A block
            has at most 1024 threads.
        use_shared, use_private: copy data that is read repeatedly to shared memory, to registers.
        unroll_copy_shared: unroll the copies to shared memory.
        use_readonly_cache: read inputs through `__ldg`.
        max_shared: limit on shared memory in bytes; None for the limit of the device.
        private_depth, shared_depth: number of band members below which copies are placed; None for
            all mapped members.
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
            if not 1 <= len(values) <= 3 or any(value < 1 for value in values):
                raise _wrong(name, values, "1 to 3 positive integers")
        product = 1
        for extent in self.threads:
            product *= extent
        if product > 1024:
            raise _wrong("threads", self.threads, "a product of at most 1024")
        _check_range(self, "private_depth", 0, 10)
        _check_range(self, "shared_depth", 0, 7)
        _check_range(self, "max_shared", 0, 1 << 20)


@dataclasses.dataclass(frozen=True, slots=True)
class TritonOptions:
    """Mapping of nests to Triton. Blocks are powers of two; None lets the sizes decide.

    Attributes:
        product: rows, columns and terms of a tile of a matrix product, each at least 16.
        reduction: points and terms of a tile of any other reduction; 1 term means that the terms of
            a point are processed one after the other.
        pointwise: points of a tile without a reduction.
        num_warps: warps of a program.
        num_stages: tiles of operands that are loaded ahead.
        split: programs that share the terms of a tile; a second kernel combines their results.
        input_precision: float32 products in float32 ("ieee"), in TF32, which has 10 bits of
            mantissa ("tf32"), or as three products in TF32 ("tf32x3"). Products of 16-bit floats
            are exact.
        split_guards: compute the parts of a nest where a guard is true or false in separate kernels
            instead of masking reads.
    """

    product: tuple[int, ...] | None = None
    reduction: tuple[int, ...] | None = None
    pointwise: int | None = None
    num_warps: int | None = None
    num_stages: int | None = None
    split: int | None = None
    input_precision: Literal["ieee", "tf32", "tf32x3"] = "ieee"
    split_guards: bool = False

    def __post_init__(self) -> None:
        for name, count, least in (("product", 3, 16), ("reduction", 2, 1)):
            sizes = getattr(self, name)
            if sizes is not None and not (
                len(sizes) == count and all(_is_power(size, least, 1 << 14) for size in sizes)
            ):
                raise _wrong(name, sizes, f"{count} powers of two from {least} to 16384")
        for name, greatest in (("pointwise", 1 << 16), ("num_warps", 32)):
            value = getattr(self, name)
            if value is not None and not _is_power(value, 1, greatest):
                raise _wrong(name, value, f"a power of two from 1 to {greatest}")
        _check_range(self, "num_stages", 1, 8)
        _check_range(self, "split", 1, 256)
        if self.input_precision not in _PRECISIONS:
            raise _wrong(
                "input_precision", self.input_precision, f"one of {', '.join(_PRECISIONS)}"
            )


def _is_power(value: int, least: int, greatest: int) -> bool:
    return least <= value <= greatest and value & (value - 1) == 0


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """Options of a compilation. Setters return a changed copy, so they can be chained.

    >>> Options().with_tile(32, 32).with_unroll(4).with_micro(12, 2).tile
    (32, 32)

    Attributes:
        outer_fusion: neighbouring nests that share their outermost parallel loops: all whose shared
            data then stays in a cache ("max"), only those whose shared data would otherwise not fit
            in a cache and that a model of the processor finds cheaper together ("preserve3"), or
            none ("min").
        intra_fusion: neighbouring statements that become one nest, so that a bias or an activation
            is applied while the product is still in registers: all that keep one parallel loop
            ("max"), all that keep their parallel loops or three of them ("preserve3"), or none
            ("min").
        tile: tile sizes along the outermost loops, 0 for an untiled loop. On a CPU a tile is a
            block of register tiles, rounded up to whole register tiles, that share the contents of
            a cache and are distributed over threads; loops that all accesses traverse as one loop
            take one size. On a GPU a tile belongs to a block of threads, and an additional size
            sets the number of reduction terms between two copies. None: no tiles on a CPU, (32, 32,
            32) on a GPU.
        unroll: unroll factor of the innermost reduction, 1 to 256.
        backend: "tiles" for register tiles of vectors, "scalar" for plain loops.
        parallel_depth: number of outermost loops distributed over threads; None chooses enough.
        micro: largest number of rows and of vectors in a register tile; None for the model's
            choice.
        k_block: reduction terms of a product between two stores, if an operand is packed.
        vector_index: position of the vectorised index in the output; None for the model's choice.
        pack: pack operands if it pays ("auto"), if it is possible ("always"), or not ("never").
        prefetch: prefetch distance of a gather in terms; 0 disables prefetching, None means 8.
        threads: number of threads; None for torch's setting, or all processors without torch.
        compiler: gcc or clang.
        extra_flags: additional compiler flags from `codegen.toolchain.ALLOWED_FLAGS`.
        gpu: code for tensors on a GPU: CUDA C compiled by NVRTC, or Triton.
        cuda: the mapping to a GPU by CUDA C.
        triton: the mapping to a GPU by Triton.
    """

    outer_fusion: Fusion = "preserve3"
    intra_fusion: Fusion = "preserve3"
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
    gpu: Literal["nvrtc", "triton"] = "nvrtc"
    cuda: CudaOptions = dataclasses.field(default_factory=CudaOptions)
    triton: TritonOptions = dataclasses.field(default_factory=TritonOptions)

    def __post_init__(self) -> None:
        for name, allowed in (
            ("outer_fusion", _FUSIONS),
            ("intra_fusion", _FUSIONS),
            ("pack", _PACKS),
            ("compiler", _COMPILERS),
            ("backend", _BACKENDS),
            ("gpu", _GPUS),
        ):
            if getattr(self, name) not in allowed:
                raise _wrong(name, getattr(self, name), f"one of {', '.join(allowed)}")
        tile = self.tile or ()
        if len(tile) > 16 or any(size < 0 for size in tile):
            raise _wrong(
                "tile", self.tile, "at most 16 non-negative integers, 0 for an untiled loop"
            )
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
        """Return a copy with other values for the named options.

        Raises:
            TensorComprehensionError: an option is unknown or its value is not allowed.
        """
        unknown = set(changes) - {field.name for field in dataclasses.fields(self)}
        if unknown:
            raise TensorComprehensionError(
                f"There is no option `{sorted(unknown)[0]}`. The options are "
                f"{', '.join(field.name for field in dataclasses.fields(self))}."
            )
        return dataclasses.replace(self, **changes)

    def with_tile(self, *sizes: int) -> Self:
        """Set the tile sizes."""
        return self.replace(tile=tuple(sizes))

    def with_unroll(self, factor: int) -> Self:
        """Set the unroll factor of the innermost reduction."""
        return self.replace(unroll=factor)

    def with_fusion(self, outer: Fusion, intra: Fusion | None = None) -> Self:
        """Set the fusion of outermost loops and of statements; `intra` defaults to `outer`."""
        return self.replace(outer_fusion=outer, intra_fusion=intra or outer)

    def with_micro(self, rows: int, vectors: int) -> Self:
        """Set the largest register tile."""
        return self.replace(micro=(rows, vectors))

    def with_threads(self, threads: int | None) -> Self:
        """Set the number of threads."""
        return self.replace(threads=threads)

    def with_cuda(self, **changes: Any) -> Self:
        """Set options of the GPU mapping."""
        return self.replace(cuda=dataclasses.replace(self.cuda, **changes))

    def with_triton(self, **changes: Any) -> Self:
        """Generate Triton for a GPU, and set options of its mapping.

        >>> Options().with_triton(product=(64, 64, 32)).gpu
        'triton'
        """
        return self.replace(gpu="triton", triton=dataclasses.replace(self.triton, **changes))

    def to_dict(self) -> dict[str, Any]:
        """Return the options as a JSON-serialisable dictionary."""
        return _plain(dataclasses.asdict(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return options from the result of `to_dict`; missing options have their defaults.

        Raises:
            TensorComprehensionError: an option is unknown or its value is not allowed.
        """
        arguments = {name: value for name, value in values.items() if name not in _REMOVED}
        groups = {name: arguments.pop(name, None) for name in ("cuda", "triton")}
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for name, value in arguments.items():
            if name not in fields:
                raise TensorComprehensionError(
                    f"There is no option `{name}`; it belongs to another version of the library. "
                    "Remove it."
                )
            arguments[name] = _checked(name, value, getattr(cls(), name))
        for group, values_of_group in groups.items():
            if values_of_group is None:
                continue
            defaults = getattr(cls(), group)
            names = {field.name for field in dataclasses.fields(defaults)}
            if not isinstance(values_of_group, Mapping) or not set(values_of_group) <= names:
                raise _wrong(group, values_of_group, f"a mapping of {', '.join(sorted(names))}")
            checked = {
                name: _checked(name, value, getattr(defaults, name))
                for name, value in values_of_group.items()
            }
            arguments[group] = dataclasses.replace(defaults, **checked)
        return cls(**arguments)


_OPTIONAL_TUPLES = ("micro", "tile", "product", "reduction")


def _checked(name: str, value: Any, default: Any) -> Any:
    """Return a stored value converted to the type of its option."""
    if isinstance(default, tuple) or (name in _OPTIONAL_TUPLES and value is not None):
        items = value if isinstance(value, list | tuple) else [value]
        kind = str if name == "extra_flags" else int
        if not all(type(item) is kind for item in items):
            raise _wrong(name, value, f"a list of {'strings' if kind is str else 'integers'}")
        return tuple(items)
    kinds = (type(default),) if default is not None else (int, type(None))
    if type(value) not in kinds:
        raise _wrong(name, value, f"of type {' or '.join(kind.__name__ for kind in kinds)}")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _check_range(options: Any, name: str, least: int, greatest: int) -> None:
    value = getattr(options, name)
    if value is not None and not least <= value <= greatest:
        raise _wrong(name, value, f"from {least} to {greatest}")


def _wrong(name: str, value: object, allowed: str) -> TensorComprehensionError:
    return TensorComprehensionError(f"The option `{name}` is {value!r}; it must be {allowed}.")
