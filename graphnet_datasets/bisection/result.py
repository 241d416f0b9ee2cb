"""The result of a bisection and its files."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from ..atomic import write_bytes, write_text
from ..benchmark import Settings
from ..benchmark.executors.jobs import CandidateCompiler
from ..report.graph_picture import write_graph
from ..sample import Sample
from ..storage.table import write_table
from .failures import Failure
from .reproducer import ELEMENTS_FILE, print_reproducer

SAMPLE_FILE, PICTURE_FILE = "minimal.parquet", "minimal.svg"
TEST_FILE, SUMMARY_FILE = "test_minimal.py", "bisection.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bisection:
    """The smallest failing part of a graph found by a bisection.

    The inputs of `sample` contain the elements that reproduce the failure; `ops` are the part's
    operators in the whole graph. `is_minimal` is false if the budget ended the search early.
    """

    whole: Sample
    sample: Sample
    failure: Failure
    candidate: CandidateCompiler
    device: str
    settings: Settings
    is_minimal: bool
    num_trials: int
    num_known: int
    seconds: float

    @property
    def ops(self) -> tuple[int, ...]:
        """The positions of the operators in the whole graph."""
        if self.sample.provenance.parent_id != self.whole.id:
            return tuple(range(self.whole.num_ops))
        return self.sample.provenance.parent_ops

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets of the operators."""
        return tuple(op.target for op in self.sample.ops)

    def __str__(self) -> str:
        num_ops = self.sample.num_ops
        operators = "1 operator" if num_ops == 1 else f"{num_ops} operators"
        smallest = "" if self.is_minimal else " (the budget ran out; it may become smaller)"
        lines = [
            f"{self.candidate.compiler} fails on {operators} of {self.whole.num_ops} of "
            f"{self.whole.id}{smallest}: {self.failure}",
            *(
                f"  {position}: {target}"
                for position, target in zip(self.ops, self.targets, strict=True)
            ),
            f"{self.num_trials} trials, {self.num_known} known from before, {self.seconds:.1f} s",
        ]
        return "\n".join(lines)

    def write(self, out: str | os.PathLike[str]) -> dict[str, Path]:
        """Write the sample, its picture, a test that reproduces the failure, and a summary to
        `out`.

        If `reproducer` knows how to call the compiler, the test requires only the framework and the
        compiler. This method does not run the test.
        """
        place = Path(out)
        place.mkdir(parents=True, exist_ok=True)
        text, elements = print_reproducer(
            self.sample, self.failure, self.candidate, self.device, self.settings, SAMPLE_FILE
        )
        write_table([self.sample], place / SAMPLE_FILE)
        write_graph(self.sample, place / PICTURE_FILE)
        if elements:
            write_bytes(place / ELEMENTS_FILE, elements)
        else:  # remove the file of an earlier, larger part
            (place / ELEMENTS_FILE).unlink(missing_ok=True)
        write_text(place / TEST_FILE, text)
        summary = {
            "sample_id": self.whole.id,
            "compiler": self.candidate.compiler,
            "compiler_version": self.candidate.version,
            "options": dict(self.candidate.options),
            "failure": self.failure.kind,
            "description": str(self.failure),
            "ops": list(self.ops),
            "targets": list(self.targets),
            "is_minimal": self.is_minimal,
            "num_trials": self.num_trials + self.num_known,
        }
        write_text(place / SUMMARY_FILE, json.dumps(summary, indent=2) + "\n")
        names = (SAMPLE_FILE, PICTURE_FILE, TEST_FILE, SUMMARY_FILE)
        return {name: place / name for name in names}
