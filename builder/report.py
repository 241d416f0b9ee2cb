"""The table of captured models in `docs/dataset.md`, written between two markers."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq

from graphnet_datasets.terminal import counted

from .capturing import Capture
from .effort import Sums, effort_table
from .full import Graph
from .libraries import LIBRARIES
from .pages import write_between
from .reasons import reason_class

BEGIN, END = "<!-- captured models: begin -->", "<!-- captured models: end -->"


def write_report(
    path: Path,
    tried: Sequence[Capture],
    graphs: Sequence[Graph],
    num_not_tried: int,
    efforts: Sums | None = None,
) -> None:
    """Replace the text between the markers of `path` by the tables of a build.

    `efforts` contains the time and memory of the captures.

    Raises:
        GraphNetError: the file has no markers.
    """
    lines = [*_lines(tried, graphs, num_not_tried)]
    if efforts:
        lines += ["", *effort_table(efforts)]
    write_between(path, BEGIN, END, lines)


def _lines(tried: Sequence[Capture], graphs: Sequence[Graph], num_not_tried: int) -> Iterable[str]:
    num_captured = sum(capture.path is not None for capture in tried)
    num_rows = sum(_num_rows(capture.path) for capture in tried if capture.path is not None)
    families = {graph.family for graph in graphs}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    yield (
        f"On {today}, with torch {version('torch').partition('+')[0]}: {len(tried):,} entries "
        "tried, "
        f"{num_captured:,} captured ({num_captured / max(1, len(tried)):.1%}), "
        f"{counted(num_rows - len(graphs), 'graph')} equal to another one or linked to two splits; "
        f"**{len(graphs):,} graphs of {len(families):,} families**."
    )
    if num_not_tried:
        some, have = ("entry", "has") if num_not_tried == 1 else ("entries", "have")
        yield f"{num_not_tried:,} {some} of the catalogs {have} not been tried yet."
    yield ""
    yield "| source | licence | task | tried | captured | graphs | families | failed |"
    yield "|---|---|---|---|---|---|---|---|"
    graphs_of: dict[str, list[Graph]] = {}
    for graph in graphs:
        graphs_of.setdefault(graph.entry, []).append(graph)
    groups: dict[tuple[str, str], list[Capture]] = {}
    for capture in tried:
        groups.setdefault((capture.entry.library, capture.entry.task), []).append(capture)
    for (name, task), captures in sorted(groups.items(), key=lambda pair: pair[0]):
        library = LIBRARIES[name]
        title = f"{name} {library.version}".strip() if library.distribution else "this project"
        shipped_graphs = [
            graph for capture in captures for graph in graphs_of.get(capture.entry.name, ())
        ]
        captured = sum(capture.path is not None for capture in captures)
        yield (
            f"| {title} | {library.license} | {task} | {len(captures):,} | {captured:,} "
            f"| {len(shipped_graphs):,} | {len({graph.family for graph in shipped_graphs}):,} "
            f"| {len(captures) - captured:,} |"
        )
    yield ""
    yield "| why entries failed | entries | by source |"
    yield "|---|---|---|"
    reasons: dict[str, Counter[str]] = {}
    for capture in tried:
        if capture.path is None:
            reasons.setdefault(reason_class(capture.reason), Counter())[capture.entry.library] += 1
    ordered = sorted(reasons.items(), key=lambda pair: (-pair[1].total(), pair[0]))
    for reason, sources in ordered:
        by_source = ", ".join(f"{name} {count}" for name, count in sources.most_common())
        yield f"| {reason} | {sources.total():,} | {by_source} |"


def _num_rows(path: Path) -> int:
    return pq.read_metadata(path).num_rows
