"""One HTML file about a diagnosis, to attach to a pull request.

The file is self-contained: it loads and runs nothing. All text from records is escaped.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..bisection.result import TEST_FILE
from ..decoding import read_text
from ..report.graph_picture import draw_graph
from ..report.page import environments, render_page
from ..report.site.charts import score_bar
from ..scores import Outcome
from ..scores.expected import describe_expectations
from ..scores.latency import eager_ms
from ..scores.summary_text import describe_run, short_compiler
from ..terminal import printable_line
from .result import Diagnosis, Finding, is_known_bug

ORDER = (Outcome.WRONG, Outcome.FAILED, Outcome.UNDECIDABLE, Outcome.NOT_COUNTED, Outcome.RIGHT)
"""Outcomes in the order of the table."""
MAX_TEST_BYTES = 200_000
"""Maximum size of a test whose text the page contains."""


def write_diagnosis(diagnosis: Diagnosis) -> Path:
    """Write the page of a diagnosis to `diagnosis.page` and return its path.

    Raises:
        DiskError: The page cannot be written.
    """
    entries = "".join(
        f"<dt>{html.escape(label)}</dt><dd{_css(is_bad)}>{html.escape(text)}</dd>"
        for label, text, is_bad in diagnosis.lines()
        if label not in ("Worst", "", "Report")
    )
    sections = [
        f'<dl class="facts">{entries}</dl>',
        *(f"<p>{html.escape(sentence)}</p>" for sentence in diagnosis.machine.warnings()),
        _worst(diagnosis),
        _table(diagnosis),
        _expectations(diagnosis),
        "<h2>Environment</h2>",
        environments(diagnosis.runs),
    ]
    return render_page(
        diagnosis.page,
        title=f"Diagnosis of {short_compiler(diagnosis.compiler)}",
        summary="Speedups over eager; 1 is eager, intervals are 95 %. The samples were chosen by "
        "`graphnet doctor` to represent the dataset. They are too few for a score to publish: for "
        "one, run more graphs with `graphnet run`.",
        sections=[section for section in sections if section],
    )


def _worst(diagnosis: Diagnosis) -> str:
    if not diagnosis.findings:
        return (
            "<h2>Worst samples</h2><p>No sample is wrong, failed or clearly slower than eager.</p>"
        )
    sections = (_finding(finding, diagnosis.out) for finding in diagnosis.findings)
    return "<h2>Worst samples</h2>" + "".join(sections)


def _finding(finding: Finding, out: Path) -> str:
    """Return the section of one sample: its verdict, the minimal part, and the test below `out`."""
    parts = [
        f"<h3>{html.escape(printable_line(finding.sample_id))}</h3>",
        f"<p{_css(finding.kind != 'slow')}>{html.escape(finding.verdict)}</p>",
    ]
    bisection = finding.bisection
    if bisection is None:
        reason = printable_line(" ".join(finding.reason.split()))
        return "".join([*parts, f"<p>Not reduced: {html.escape(reason)}</p>"])
    parts.append(
        f"<p>Minimal part: {html.escape(printable_line(finding.minimal_case))}. Failure: "
        f"{html.escape(printable_line(str(bisection.failure)))}.</p>"
    )
    picture = base64.b64encode(draw_graph(bisection.sample).encode()).decode()
    parts.append(
        '<div class="scroll"><img class="graph" alt="The graph of the minimal part" '
        f'src="data:image/svg+xml;base64,{picture}"></div>'
    )
    text = read_text(finding.files[TEST_FILE])
    name = html.escape(str(finding.files[TEST_FILE].relative_to(out)))
    if len(text) <= MAX_TEST_BYTES:
        parts.append(f"<details><summary>{name}</summary><pre>{html.escape(text)}</pre></details>")
    else:
        parts.append(f"<p>Test: {name}</p>")
    return "".join(parts)


def _table(diagnosis: Diagnosis) -> str:
    """Return the table of all samples: wrong and failed ones first, then from slow to fast."""
    times = eager_ms(diagnosis.runs)
    rows = sorted(
        zip(diagnosis.runs.to_pylist(), times.tolist(), strict=True),
        key=lambda pair: _order(pair[0], diagnosis.outcomes),
    )
    right = [row for row, _ in rows if diagnosis.outcomes[row["sample_id"]] is Outcome.RIGHT]
    bounds = [
        value
        for row in right
        for value in (row.get("speedup_low"), row.get("speedup"), row.get("speedup_high"))
        if value and math.isfinite(value)
    ]
    domain = min([0.5, *bounds]), max([2.0, *bounds])
    head = "".join(f"<th>{name}</th>" for name in ("sample", "kind", "eager", "verdict"))
    body = "".join(_row(row, time_ms, diagnosis, domain) for row, time_ms in rows)
    return (
        '<h2>All samples</h2><div class="scroll"><table class="samples">'
        f"<tr>{head}</tr>{body}</table></div>"
    )


def _row(
    row: Mapping[str, Any], time_ms: float, diagnosis: Diagnosis, domain: tuple[float, float]
) -> str:
    name = row["sample_id"]
    outcome, line = describe_run(row)
    verdict = " ".join(line.split())
    is_bad = outcome in (Outcome.WRONG, Outcome.FAILED)
    kind = (
        "bug" if is_known_bug(name) else "part" if name in diagnosis.subset.parts else row["task"]
    )
    bar = ""
    if outcome is Outcome.RIGHT:
        bar = score_bar(row["speedup"], row.get("speedup_low"), row.get("speedup_high"), domain)
    time = f"{time_ms:.3g} ms" if math.isfinite(time_ms) else ""
    shown = html.escape(printable_line(name)).replace("/", "/<wbr>")
    texts = (shown, html.escape(str(kind or "")), time)
    cells = "".join(f"<td>{text}</td>" for text in texts)
    return f"<tr>{cells}<td{_css(is_bad)}>{html.escape(verdict)}{bar}</td></tr>"


def _order(row: Mapping[str, Any], outcomes: Mapping[str, Outcome]) -> tuple[int, float, str]:
    """Return the place of a sample: the largest error first, then the slowest."""
    outcome = outcomes[row["sample_id"]]
    if outcome is Outcome.WRONG:
        value = -math.inf if row.get("min_t") is None else -row["min_t"]
    else:
        value = row.get("speedup") or 0.0
    return ORDER.index(outcome), value, row["sample_id"]


def _expectations(diagnosis: Diagnosis) -> str:
    if not diagnosis.expectations:
        return ""
    text = describe_expectations(diagnosis.expectations)
    return f"<h2>Known bugs</h2><pre>{html.escape(text)}</pre>"


def _css(is_bad: bool) -> str:
    return ' class="bad"' if is_bad else ""
