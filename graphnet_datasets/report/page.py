"""A single HTML file with the scores of run sets, their pictures and their environments.

The file is self-contained: pictures are embedded, and it loads and runs nothing. All text from
records is escaped.
"""

from __future__ import annotations

import base64
import html
import importlib.resources
import json
import os
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..atomic import temporary_directory, write_text
from ..errors import ScoreError, raises_only
from ..json_text import parse_json
from ..scores import (
    as_table,
    by_sample,
    error_aware_speedup_score,
    speedup_score,
    summarise_arms,
)
from ..scores.records import is_counted, make_records
from ..scores.run_sets import Duplicates, without_duplicates
from ..scores.samples import cells_by_sample
from ..scores.summary_text import arms_cells, conclusions
from ..scores.text import html_table
from ..scores.variants import TOLERANCE, find_variant
from ..terminal import printable
from .plots import plot_runs

CAPTIONS = {
    "speedup_score": "S(t)",
    "speedup_score_by_task": "S(t) by task",
    "error_aware_speedup_score": "ES(t)",
    "error_aware_speedup_score_by_task": "ES(t) by task",
    "speedups": "Speedups of correct samples",
    "speedups_by_task": "Speedups of correct samples by task",
    "latency": "Speedup over eager's time",
    "samples": "Speedup of each sample",
}

MAX_HEADROOM = 20
"""Maximum number of samples listed with their potential speedup."""


@raises_only(ScoreError)
def write_page(
    run_sets: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    title: str = "Scores of tensor compilers",
    p: float | None = None,
    b: float = 0.1,
    variant: str = "report",
    duplicates: Duplicates = "refuse",
) -> Path:
    """Write a page about run sets, the records of one compiler by name, and return its path.

    Raises:
        ScoreError: a run set cannot be scored.
        MissingExtraError: matplotlib is not installed.
    """
    tables = {
        name: without_duplicates(as_table(runs), duplicates) for name, runs in run_sets.items()
    }
    options: dict[str, Any] = {"p": p, "b": b, "variant": variant}
    sections = [_arms(tables, options), _pictures(tables, options)]
    for name, table in tables.items():
        scores = [score(table, **options) for score in (speedup_score, error_aware_speedup_score)]
        parts = [f"<h2>{html.escape(name)}</h2>"]
        parts += [f'<div class="scroll">{score._repr_html_()}</div>' for score in scores]
        parts += [_samples(table, variant), _headroom(table), environments(table)]
        sections.append("\n".join(parts))
    chosen = find_variant(variant)
    summary = (
        f"{len(tables)} run sets; p = {chosen.default_p if p is None else p:g}, b = {b:g}, "
        f"variant {variant}. S(t) and ES(t) are those of the GraphNet technical report, "
        "arXiv 2510.24035; 1 is eager. Intervals are 95 % over families."
    )
    return render_page(path, title=title, summary=summary, sections=sections)


def render_page(
    path: str | os.PathLike[str], *, title: str, summary: str, sections: Sequence[str]
) -> Path:
    """Write a self-contained page and return its path; the sections are HTML."""
    template = (
        importlib.resources.files("graphnet_datasets.report")
        .joinpath("templates/page.html")
        .read_text()
    )
    text = string.Template(template).substitute(
        title=html.escape(title), summary=html.escape(summary), sections="\n".join(sections)
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_text(path, printable(text))


def _arms(tables: Mapping[str, pa.Table], options: Mapping[str, Any]) -> str:
    """Return the table with a row per run set, and its conclusions."""
    summaries = summarise_arms(tables, **options)
    return (
        '<h2>Verdicts</h2>\n<div class="scroll">'
        f"{html_table('', *arms_cells(summaries), notes=conclusions(summaries))}</div>"
    )


def _pictures(tables: Mapping[str, pa.Table], options: Mapping[str, Any]) -> str:
    parts = []
    with temporary_directory() as directory:
        for picture in plot_runs(tables, directory, **options):
            if picture.suffix == ".svg":
                caption = CAPTIONS[
                    picture.stem.partition("_")[0] if "samples_" in picture.stem else picture.stem
                ]
                data = base64.b64encode(picture.read_bytes()).decode()
                parts.append(f"<h2>{caption}</h2>")
                parts.append(f'<img alt="{caption}" src="data:image/svg+xml;base64,{data}">')
    return "\n".join(parts)


def _samples(table: pa.Table, variant: str) -> str:
    """List the samples that are not correct or not decidable, with their errors.

    A sample is correct by the criterion of `compare`: it passes at t = -3 and zeros would not.
    """
    chosen = find_variant(variant)
    counted = table.filter(pa.array(is_counted(table, chosen)))
    is_correct = make_records(table, chosen).is_right_at(TOLERANCE)
    columns = ["sample_id", "task", "status", "reason", "error_type", "min_t", "null_t", "eager_t"]
    rows = counted.select(columns).filter(pa.array(~is_correct)).to_pylist()
    if not rows:
        return f"<p>Every sample that counts is correct at t = {TOLERANCE}.</p>"
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    caption = (
        f"{len(rows)} samples that are not correct at t = {TOLERANCE}, or that no t "
        "distinguishes from zeros (null_t) or from eager's rounding (eager_t)"
    )
    return f'<div class="scroll">{html_table(caption, columns, cells)}</div>'


def _headroom(table: pa.Table) -> str:
    """List the samples with the largest potential speedups."""
    rows = [row for row in by_sample(table) if row["roofline_share"] is not None]
    if not rows:
        return ""
    caption = (
        f"The largest headroom: {min(len(rows), MAX_HEADROOM)} of {len(rows)} samples whose time "
        "can be compared with the peak rates of the device"
    )
    listed = html_table(caption, *cells_by_sample(rows[:MAX_HEADROOM]))
    return f'<div class="scroll">{listed}</div>'


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def environments(table: pa.Table) -> str:
    """Return HTML that lists the machines of the runs, the most frequent first."""
    parts = []
    for text, count in Counter(table["environment"].to_pylist()).most_common():
        environment = parse_json(text, {"environment": text}) if text else {}
        entries = "".join(
            f"<dt>{html.escape(str(name))}</dt><dd>{html.escape(_plain(value))}</dd>"
            for name, value in (environment.items() if isinstance(environment, dict) else ())
        )
        parts.append(f"<p>{count} runs on:</p><dl>{entries}</dl>" if entries else "")
    return "\n".join(parts)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
