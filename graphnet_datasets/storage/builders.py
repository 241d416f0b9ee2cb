"""Builders of `datasets` for Parquet files, without importing what such files never need."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


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
