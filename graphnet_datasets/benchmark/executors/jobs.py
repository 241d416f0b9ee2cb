"""Jobs of executors: a sample with its candidate compilers, and the type of progress callbacks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...compilers import find_entry, resolve_name
from ...sample import Sample
from ..judging.correctness import Output


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


@dataclasses.dataclass(frozen=True)
class SampleJob:
    """A sample with the candidates that it has not run under yet, and their run ids.

    `row` is the sample as a row of the `graphs` table, including derived columns.
    """

    sample: Sample
    row: Mapping[str, Any]
    candidates: Sequence[tuple[str, CandidateCompiler]]


OnPhase: TypeAlias = Callable[[str, str, str], None]
"""A callback that receives the sample, the compiler and the phase that a run enters."""

TakeOutputs: TypeAlias = Callable[[SampleJob, Mapping[str, Any], Sequence[Output]], None]
