"""What an executor is handed: a sample under compilers; and whom it tells of its progress."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...compilers import find_entry, resolve_name
from ...sample import Sample
from ..judging.correctness import Output


@dataclasses.dataclass(frozen=True)
class CandidateCompiler:
    """A compiler with its options, as it was found: what a sample is run under.

    `source` is a hash of its own code (see `compilers.source_hash`), "" for those of this library.
    """

    compiler: str
    framework: str
    options: Mapping[str, Any]
    version: str
    source: str = ""

    @property
    def reference(self) -> str:
        """The name under which another process finds the compiler."""
        entry = find_entry(self.compiler, self.framework)
        # Processes of samples have a directory of their own to work in.
        return resolve_name(entry.reference if entry.origin == "registered" else self.compiler)


@dataclasses.dataclass(frozen=True)
class SampleJob:
    """One sample under the candidates that it has not been run under yet, with their run ids.

    `row` is the sample as a row of the `graphs` table, its derived columns included.
    """

    sample: Sample
    row: Mapping[str, Any]
    candidates: Sequence[tuple[str, CandidateCompiler]]


OnPhase: TypeAlias = Callable[[str, str, str], None]
"""Told the sample, the compiler and the phase that a run enters."""

TakeOutputs: TypeAlias = Callable[[SampleJob, Mapping[str, Any], Sequence[Output]], None]
