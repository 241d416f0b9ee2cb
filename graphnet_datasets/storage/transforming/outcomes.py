"""What became of each graph of a transform, and the report that says so."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...atomic import write_text
from ...decoding import read_json_lines
from ...terminal import counted

MAX_REASONS_SHOWN = 20


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Why `count` samples could not be made of a graph; `message` is that of the first of them."""

    reason: str
    operator: str = ""
    message: str = ""
    count: int = 1


@dataclasses.dataclass(frozen=True)
class GraphOutcome:
    """What became of one graph: how many samples were made of it, and what was refused.

    `has_run` is false for a graph that was too large to be run, or was lost in a run.
    """

    id: str
    framework: str
    num_made: int = 0
    has_run: bool = True
    refused: tuple[Refusal, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether nothing could be made of it, for a reason."""
        return not self.num_made and bool(self.refused)


@dataclasses.dataclass(frozen=True)
class TransformReport:
    """What a transform gave: the dataset, None if nothing could be made, and what became of each.

    `num_made` counts what was made of all graphs, `num_rows` what is left where equal parts are
    merged.
    """

    out: Path | None
    report_path: Path
    outcomes: tuple[GraphOutcome, ...]
    num_rows: int
    num_resumed: int = 0

    @property
    def num_made(self) -> int:
        """How many samples were made, before equal ones were merged."""
        return sum(each.num_made for each in self.outcomes)

    @property
    def refused(self) -> list[GraphOutcome]:
        """The graphs of which nothing could be made."""
        return [each for each in self.outcomes if each.is_refused]

    def reasons(self) -> list[tuple[str, int, int]]:
        """Return each reason with how many samples and how many graphs it refused, most first."""
        samples: collections.Counter[str] = collections.Counter()
        graphs: collections.Counter[str] = collections.Counter()
        for outcome in self.outcomes:
            for reason, count in _by_reason(outcome.refused).items():
                samples[reason] += count
                graphs[reason] += 1
        return [(reason, count, graphs[reason]) for reason, count in samples.most_common()]

    def summary(self) -> str:
        """Return the report in a few lines for a terminal."""
        graphs = counted(len(self.outcomes), "graph")
        rows = counted(self.num_rows, "sample")
        where = f"{rows} written to {self.out}" if self.out else "Nothing written"
        done = sum(bool(each.num_made) for each in self.outcomes)
        parts = [f"{done} transformed", f"{len(self.refused)} refused"]
        empty = len(self.outcomes) - done - len(self.refused)
        if empty:
            parts.append(f"{empty} without any such part")
        unrun = sum(not each.has_run and bool(each.num_made) for each in self.outcomes)
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
    for each in refused:
        counts[f"{each.reason} (`{each.operator}`)" if each.operator else each.reason] += each.count
    return counts


def write_report(outcomes: Iterable[GraphOutcome], path: Path) -> None:
    """Write one JSON object a graph."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{json.dumps(dataclasses.asdict(each))}\n" for each in outcomes]
    write_text(path, "".join(lines))


def read_report(path: str | os.PathLike[str]) -> list[GraphOutcome]:
    """Return the outcomes that a report holds.

    >>> import tempfile
    >>> refusal = Refusal("it overflows", "torch.exp", "`a` overflows.")
    >>> outcome = GraphOutcome("a", "torch", refused=(refusal,))
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_report([outcome], Path(directory) / "report.jsonl")
    ...     read_report(Path(directory) / "report.jsonl") == [outcome]
    True
    """
    return [outcome_of(fields) for fields in read_json_lines(path)]


def outcome_of(fields: Mapping[str, Any]) -> GraphOutcome:
    """Return the outcome with these fields."""
    refused = tuple(Refusal(**each) for each in fields["refused"])
    return GraphOutcome(**{**fields, "refused": refused})
