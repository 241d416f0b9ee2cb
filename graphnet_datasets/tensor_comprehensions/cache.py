"""Parquet cache of tuned options that processes and machines can share.

A row stores one set of options with all measured times, for one definition, one set of sizes and
one kind of machine. Rows contain no code: options are validated when they are read, and the kernel
is generated again from the definition.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..atomic import replaced
from ..decoding import check_parquet, load_json
from ..errors import DecodedSizeError, TensorComprehensionError
from ..schema import SCHEMA_VERSION
from .codegen.machine import default_threads, this_machine
from .codegen.toolchain import compiler_identity
from .language.instance import Instance, Tensor
from .options import Options
from .tables import TC_CACHE_SCHEMA
from .triton.loading import check_installed
from .tuner.config import Candidate

GENERATOR_VERSION = 2
"""Incremented when the code generated for the same options changes, which invalidates old times."""

MAX_ROWS_PER_KEY = 10


@dataclasses.dataclass(frozen=True, slots=True)
class CacheKey:
    """Everything but the options that measured times depend on."""

    definition: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    backend: str
    processor: str
    isa: str
    threads: int
    compiler: str
    generator_version: int = GENERATOR_VERSION

    @property
    def digest(self) -> str:
        """SHA-256 of all fields."""
        return hashlib.sha256(json.dumps(dataclasses.astuple(self)).encode()).hexdigest()


def cache_key(instance: Instance, options: Options | None = None, device: Any = None) -> CacheKey:
    """Return the key of an instance on this machine.

    Args:
        device: a `torch.device` of type `cuda`; None for the CPU.
    """
    options = options or Options()
    definition = (
        hashlib.sha256(instance.canonical_text.encode()).hexdigest(),
        tuple(map(_describe, instance.inputs)),
        tuple(map(_describe, instance.outputs)),
    )
    if device is not None:
        return CacheKey(*definition, *_gpu(device))
    machine = this_machine()
    return CacheKey(
        *definition,
        "cpu",
        machine.model,
        machine.isa,
        options.threads or default_threads(),
        compiler_identity(options.compiler)[1],
    )


def _gpu(device: Any) -> tuple[str, str, str, int, str]:
    """Return backend, processor, instruction set, threads and compiler of kernels on a GPU."""
    import torch

    check_installed()
    properties = torch.cuda.get_device_properties(device)
    version = importlib.metadata.version("triton")
    isa = f"sm_{properties.major}{properties.minor}"
    return "cuda", properties.name, isa, 1, f"triton {version}"


def _describe(tensor: Tensor) -> str:
    shape, strides = (",".join(map(str, numbers)) for numbers in (tensor.shape, tensor.strides))
    return f"{tensor.dtype.name}[{shape}]/{strides}"


class TuningCache:
    """Tuned options in a Parquet file that several processes may write at once.

    >>> import tempfile
    >>> from graphnet_datasets.tensor_comprehensions.language import check, instantiate
    >>> f = instantiate(check("def f(float(N) A) -> (B) { B(i) = A(i) }")[0], [(6,)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = TuningCache(Path(folder) / "cache.parquet")
    ...     cache.add(cache_key(f), [Candidate(Options(unroll=2), (1.0, 2.0, 3.0))])
    ...     cache.best(cache_key(f)).unroll
    2
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def table(self) -> pa.Table:
        """Return all rows.

        Raises:
                TensorComprehensionError: the file is not a table of tuned options.
        """
        if not self.path.exists():
            return TC_CACHE_SCHEMA.empty_table()
        try:
            check_parquet(self.path, self.path)
            table = pq.read_table(self.path)
            return table.select(TC_CACHE_SCHEMA.names).cast(TC_CACHE_SCHEMA)
        except DecodedSizeError:
            raise
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError, OSError, ValueError) as error:
            raise TensorComprehensionError(
                f"`{self.path}` is not a table of tuned options: {error}. Choose another path, or "
                "delete it."
            ) from error

    def add(self, key: CacheKey, candidates: Iterable[Candidate]) -> None:
        """Add candidates that ran successfully.

        Candidates with equal options are merged, and only the fastest of each key are kept.
        """
        rows = [_row(key, candidate) for candidate in candidates if candidate.times_ms]
        if rows:
            self.merge(pa.Table.from_pylist(rows, schema=TC_CACHE_SCHEMA))

    def merge(self, other: pa.Table | TuningCache) -> None:
        """Add all rows of another table; times of equal options are pooled."""
        table = other.table() if isinstance(other, TuningCache) else other.cast(TC_CACHE_SCHEMA)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            merged = _pruned([*self.table().to_pylist(), *table.to_pylist()])
            self._write(pa.Table.from_pylist(merged, schema=TC_CACHE_SCHEMA))

    def merge_dataset(self, name: str | Path, *, revision: str | None = None) -> int:
        """Add the `tc_cache` configuration of a dataset and return its number of rows.

        Args:
            name: a Hub repository, directory or file, as in `load_dataset`.
            revision: a branch, tag or commit of a repository.

        Raises:
            DatasetNotFoundError: there is no such dataset, or it has no `tc_cache`
                configuration.
            TensorComprehensionError: its rows are not tuned options.
        """
        from ..storage.loading import load_dataset

        dataset = load_dataset(str(name), "tc_cache", split="train", revision=revision)
        try:
            rows: Any = dataset.with_format("arrow")[:]
            table: pa.Table = rows.select(TC_CACHE_SCHEMA.names).cast(TC_CACHE_SCHEMA)
        except (pa.ArrowInvalid, KeyError, ValueError) as error:
            raise TensorComprehensionError(
                f"The `tc_cache` configuration of `{name}` does not contain tuned options: {error}"
            ) from error
        self.merge(table)
        return table.num_rows

    def best(self, key: CacheKey, *, any_machine: bool = False) -> Options | None:
        """Return the fastest options for a key, or None.

        Args:
            any_machine: without options for this machine, fall back to another processor with the
                same vector instructions and number of threads.
        """
        options = self.ranked(key, any_machine=any_machine)
        return options[0] if options else None

    def ranked(self, key: CacheKey, *, any_machine: bool = False) -> list[Options]:
        """Return all options for a key, fastest first; rows with invalid options are skipped."""
        rows = [row for row in self.table().to_pylist() if row["median_ms"] > 0]
        same = [row for row in rows if row["key"] == key.digest]
        if not same and any_machine:
            same = [row for row in rows if _is_similar(row, key)]
        options = []
        for row in sorted(same, key=lambda candidate: candidate["median_ms"]):
            with contextlib.suppress(TensorComprehensionError, ValueError, TypeError):
                options.append(Options.from_dict(load_json(row["options"], self.path)))
        return options

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(self.path.name + ".lock")
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _write(self, table: pa.Table) -> None:
        with replaced(self.path) as place:
            pq.write_table(table, place, compression="zstd")


def _row(key: CacheKey, candidate: Candidate) -> dict[str, Any]:
    options = json.dumps(candidate.options.to_dict(), sort_keys=True)
    return {
        "schema_version": SCHEMA_VERSION,
        "row_id": hashlib.sha256(f"{key.digest} {options}".encode()).hexdigest(),
        "key": key.digest,
        **{name: _plain(value) for name, value in dataclasses.asdict(key).items()},
        "options": options,
        "times_ms": list(candidate.times_ms),
        "median_ms": candidate.median_ms,
        "source_hash": candidate.source_hash,
        "error": candidate.error,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _is_similar(row: dict[str, Any], key: CacheKey) -> bool:
    mine = dataclasses.asdict(key)
    names = ("definition", "inputs", "outputs", "backend", "isa", "threads", "generator_version")
    return all(row[name] == _plain(mine[name]) for name in names)


def _pruned(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge rows with equal options and return the best rows of each key, sorted by key."""
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        same = merged.get((row["key"], row["options"]))
        if same is None:
            merged[row["key"], row["options"]] = dict(row)
        elif same["times_ms"] != row["times_ms"]:
            same["times_ms"] = [*same["times_ms"], *row["times_ms"]][-100:]
            same["median_ms"] = statistics.median(same["times_ms"])
    by_key: dict[str, list[dict[str, Any]]] = {}
    for row in merged.values():
        by_key.setdefault(row["key"], []).append(row)
    best = []
    for key in sorted(by_key):
        ranked = sorted(by_key[key], key=lambda row: (row["median_ms"], row["options"]))
        best += ranked[:MAX_ROWS_PER_KEY]
    return best
