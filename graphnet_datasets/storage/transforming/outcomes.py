"""The outcomes of a transform per graph, and its report."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ...decoding import read_json_lines
from ...terminal import counted

MAX_REASONS_SHOWN = 20


@dataclasses.dataclass(frozen=True)
class Refusal:
    """The reason why `count` samples of a graph are missing, with the first error's message."""

    reason: str
    operator: str = ""
    message: str = ""
    count: int = 1


@dataclasses.dataclass(frozen=True)
class GraphOutcome:
    """The outcome of one graph: the number of created samples, and the refusals.

    `has_run` is false for a graph that was too large to run, or whose run did not return.
    """

    id: str
    framework: str
    num_made: int = 0
    has_run: bool = True
    refused: tuple[Refusal, ...] = ()

    @property
    def is_refused(self) -> bool:
        """True if no sample was created because of refusals."""
        return not self.num_made and bool(self.refused)


@dataclasses.dataclass(frozen=True)
class TransformReport:
    """The result of a transform: the dataset, None without samples, and all outcomes.

    `num_made` counts samples before equal parts are merged, `num_rows` afterwards.
    """

    out: Path | None
    report_path: Path
    outcomes: tuple[GraphOutcome, ...]
    num_rows: int
    num_resumed: int = 0

    @property
    def num_made(self) -> int:
        """The number of created samples before equal samples are merged."""
        return sum(outcome.num_made for outcome in self.outcomes)

    @property
    def refused(self) -> list[GraphOutcome]:
        """The graphs from which no sample could be created."""
        return [outcome for outcome in self.outcomes if outcome.is_refused]

    def reasons(self) -> list[tuple[str, int, int]]:
        """Return each reason with its numbers of samples and graphs, most frequent first."""
        samples: collections.Counter[str] = collections.Counter()
        graphs: collections.Counter[str] = collections.Counter()
        for outcome in self.outcomes:
            for reason, count in _by_reason(outcome.refused).items():
                samples[reason] += count
                graphs[reason] += 1
        return [(reason, count, graphs[reason]) for reason, count in samples.most_common()]

    def summary(self) -> str:
        """Return a summary in a few lines for a terminal."""
        graphs = counted(len(self.outcomes), "graph")
        rows = counted(self.num_rows, "sample")
        where = f"{rows} written to {self.out}" if self.out else "Nothing written"
        done = sum(bool(outcome.num_made) for outcome in self.outcomes)
        parts = [f"{done} transformed", f"{len(self.refused)} refused"]
        empty = len(self.outcomes) - done - len(self.refused)
        if empty:
            parts.append(f"{empty} without any such part")
        unrun = sum(not outcome.has_run and bool(outcome.num_made) for outcome in self.outcomes)
        if unrun:
            parts.append(f"{unrun} without a run")
        lines = [f"{where}; {graphs}: {', '.join(parts)}"]
        reasons = self.reasons()
        for reason, count, num_graphs in reasons[:MAX_REASONS_SHOWN]:
            lines.append(f"  {count} refused in {counted(num_graphs, 'graph')}: {reason}")
        if len(reasons) > MAX_REASONS_SHOWN:
            rest = sum(count for _, count, _ in reasons[MAX_REASONS_SHOWN:])
            lines.append(f"  … and {rest} for other reasons or operators")
        return "\n".join([*lines, f"Report: {self.report_path}"])


def _by_reason(refused: Iterable[Refusal]) -> Mapping[str, int]:
    counts: collections.Counter[str] = collections.Counter()
    for refusal in refused:
        counts[
            f"{refusal.reason} (`{refusal.operator}`)" if refusal.operator else refusal.reason
        ] += refusal.count
    return counts


def read_report(path: str | os.PathLike[str]) -> list[GraphOutcome]:
    """Return the outcomes of a report.

    >>> import json, tempfile
    >>> refusal = Refusal("it overflows", "torch.exp", "`a` overflows.")
    >>> outcome = GraphOutcome("a", "torch", refused=(refusal,))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "report.jsonl"
    ...     _ = path.write_text(json.dumps(dataclasses.asdict(outcome)))
    ...     read_report(path) == [outcome]
    True
    """
    return [
        GraphOutcome(
            **{**fields, "refused": tuple(Refusal(**entry) for entry in fields["refused"])}
        )
        for fields in read_json_lines(path)
    ]
