"""Builders of `datasets` for Parquet files, without importing what such files never need."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

_POOL_VARIABLE = "ARROW_DEFAULT_MEMORY_POOL"
"""Set by whoever chooses Arrow's pool of memory."""


def parquet_builder(**arguments: Any) -> Any:
    """Return `datasets`' builder of Parquet files.

    For each builder that it makes, `datasets` looks for functions of other packages in the module
    that has it (`scipy.io.loadmat`, say), and imports those packages to compare: a quarter of a
    second for one that the module cannot hold, since nothing has imported it yet.
    """
    import datasets

    with _no_imports_to_compare():
        return datasets.load_dataset_builder("parquet", **arguments)


@contextlib.contextmanager
def short_lived_memory() -> Iterator[None]:
    """Let Arrow take its memory of jemalloc meanwhile, where it was built with that.

    Preparing a table gets buffers of tens of megabytes, writes them out and drops them. Arrow's
    usual pool, mimalloc, takes huge pages for each that the system fills with zeros first: more
    than half of the processor time of a first load. Whoever has chosen a pool keeps it.

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
    """Leave packages alone that nobody has imported: there is nothing of theirs to replace.

    That holds for every other thread too. Where `datasets` is built otherwise, nothing is changed.
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
        """Replace nothing."""

    def stop(self) -> None:
        """Put nothing back."""
