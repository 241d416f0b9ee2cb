"""Jobs of executors: a sample with its candidate compilers, and the type of progress callbacks."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from ...compilers import find_entry, resolve_name
from ...sample import Sample
from ...schema import GRAPHS_SCHEMA, sample_from_row
from ...schema.sample_files import pack_row
from ..judging.correctness import Output

MAX_UNPACKED = 16
"""Number of packed samples that are cached after they were accessed."""


@dataclasses.dataclass(frozen=True)
class CandidateCompiler:
    """A compiler with its options, as inspected on the device.

    `source` is a hash of its own code (see `compilers.source_hash`), or "" for compilers of this
    library.
    """

    compiler: str
    framework: str
    options: Mapping[str, Any]
    version: str
    source: str = ""

    @property
    def reference(self) -> str:
        """The name by which another process finds the compiler."""
        entry = find_entry(self.compiler, self.framework)
        # Sample processes have a working directory of their own.
        return resolve_name(entry.reference if entry.origin == "registered" else self.compiler)


Candidates: TypeAlias = Sequence[tuple[str, CandidateCompiler]]
"""Compilers with the ids of their runs."""


class SampleJob:
    """A sample with the candidates that it has not run under yet, and their run ids."""

    def __init__(self, sample: Sample, row: Mapping[str, Any], candidates: Candidates) -> None:
        self.candidates = candidates
        self._read: Callable[[], tuple[Sample, Mapping[str, Any]]] = lambda: (sample, row)

    @property
    def sample(self) -> Sample:
        """The sample."""
        return self._read()[0]

    @property
    def row(self) -> Mapping[str, Any]:
        """The sample as a row of the `graphs` table, including derived columns."""
        return self._read()[1]

    def packed(self) -> SampleJob:
        """Return the same job with its row in compressed form, for thousands of waiting jobs.

        The sample and the row are unpacked when they are accessed, and a few of them are cached.
        """
        extras = {name: self.row[name] for name in self.row if name not in GRAPHS_SCHEMA.names}
        packed = _PackedRow(pack_row(self.row, "zstd").to_pybytes(), extras)
        job = copy.copy(self)
        job._read = packed.read
        return job

    def with_candidates(self, candidates: Candidates) -> SampleJob:
        """Return a job of the same sample with other candidates."""
        job = copy.copy(self)
        job.candidates = candidates
        return job


class _PackedRow:
    def __init__(self, content: bytes, extras: Mapping[str, Any]) -> None:
        self._content, self._extras = content, extras

    @functools.lru_cache(maxsize=MAX_UNPACKED)  # noqa: B019 - bounded, and jobs live as long
    def read(self) -> tuple[Sample, Mapping[str, Any]]:
        with pa.ipc.open_file(self._content) as reader:
            row = {**reader.get_batch(0).to_pylist()[0], **self._extras}
        return sample_from_row(row), row


OnPhase: TypeAlias = Callable[[str, str, str], None]
"""A callback that receives the sample, the compiler and the phase that a run enters."""

TakeOutputs: TypeAlias = Callable[[SampleJob, Mapping[str, Any], Sequence[Output]], None]
