"""Builders of `datasets` for Parquet files, without unnecessary imports."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..decoding import check_parquet
from ..errors import SchemaError

_POOL_VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"
"""Environment variable by which users choose Arrow's memory pool."""


def parquet_builder(**arguments: Any) -> Any:
    """Return the Parquet builder of `datasets`.

    For each builder, `datasets` searches the builder's module for functions of other packages, such
    as `scipy.io.loadmat`, and imports these packages for the comparison. That takes a quarter of a
    second, although a module cannot contain functions of a package that was never imported.
    """
    import datasets

    with _no_imports_to_compare():
        return datasets.load_dataset_builder("parquet", **arguments)


def check_downloads(builder: Any) -> None:
    """Make a builder check the sizes of downloaded files before decoding them.

    Raises:
        SchemaError: The builder reads files of another format than Parquet.
    """
    from datasets.packaged_modules.cache.cache import Cache
    from datasets.packaged_modules.parquet.parquet import Parquet

    if isinstance(builder, Cache):  # offline: an earlier call checked and prepared the files
        return
    if not isinstance(builder, Parquet):
        raise SchemaError(
            f"`{builder.dataset_name}` has no Parquet tables: `datasets` would read it with "
            f"`{type(builder).__name__}`. Choose a dataset of graphs or run records."
        )
    generate = builder._generate_tables

    def generate_checked(files: Any, *rest: Any, **named: Any) -> Iterator[Any]:
        for file in files:
            if Path(file).is_file():  # streamed files stay URLs
                check_parquet(file, builder.dataset_name)
        yield from generate(files, *rest, **named)

    builder._generate_tables = generate_checked  # type: ignore[method-assign]


def check_features(builder: Any) -> None:
    """Check that a prepared builder's columns contain values, and not references to other files.

    The metadata of a Parquet file or the card of a repository may declare a column as images,
    audio or documents. `datasets` would then open the paths and URLs in it when a row is read.

    Raises:
        SchemaError: A column contains another kind of feature.
    """
    for name, feature in (builder.info.features or {}).items():
        if kind := _other_kind(feature):
            raise SchemaError(
                f"The column `{name}` of `{builder.dataset_name}` is declared as `{kind}`, so that "
                "reading a row may open other files or addresses. Columns contain numbers, text, "
                "bytes, lists and structs: remove this column, or its declaration in the metadata "
                "of the files and in the card."
            )


def _other_kind(feature: Any) -> str:
    """Return the first kind of feature that is neither a value nor made of values, or ""."""
    import datasets

    if isinstance(feature, datasets.Value | datasets.ClassLabel):
        return ""
    if isinstance(feature, datasets.List | datasets.LargeList):
        return _other_kind(feature.feature)
    if isinstance(feature, Mapping):
        return next(filter(None, map(_other_kind, feature.values())), "")
    if isinstance(feature, list | tuple):
        return next(filter(None, map(_other_kind, feature)), "")
    return type(feature).__name__


@contextlib.contextmanager
def short_lived_memory() -> Iterator[None]:
    """Use Arrow's jemalloc pool inside the block, if Arrow was built with it.

    Preparing a table allocates, writes and frees buffers of tens of megabytes. For each buffer,
    Arrow's default pool (mimalloc) maps huge pages that the kernel must zero, which is more than
    half of the processor time of a first load. A pool chosen by the user is kept.

    >>> before = pa.default_memory_pool().backend_name
    >>> with short_lived_memory():
    ...     table = pa.table({"a": [1, 2]})
    >>> pa.default_memory_pool().backend_name == before, table["a"].to_pylist()
    (True, [1, 2])
    """
    before = pa.default_memory_pool()
    if _POOL_VARIABLE in os.environ or before.backend_name != "mimalloc":
        yield
        return
    try:
        pool = pa.jemalloc_memory_pool()
    except NotImplementedError:
        yield
        return
    pa.set_memory_pool(pool)
    try:
        yield
    finally:
        pa.set_memory_pool(before)


@contextlib.contextmanager
def _no_imports_to_compare() -> Iterator[None]:
    """Skip patching of packages that have not been imported.

    The change affects all threads. Other versions of `datasets` are left unchanged.
    """
    from datasets import streaming

    patch = getattr(streaming, "patch_submodule", None)
    if not isinstance(patch, type):
        yield
        return

    def patch_if_imported(obj: Any, target: str, *rest: Any, **named: Any) -> Any:
        package, dot, _ = target.partition(".")
        return (
            _Nothing() if dot and package not in sys.modules else patch(obj, target, *rest, **named)
        )

    streaming.patch_submodule = patch_if_imported  # type: ignore[assignment]
    try:
        yield
    finally:
        streaming.patch_submodule = patch


class _Nothing(contextlib.nullcontext[None]):
    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""
