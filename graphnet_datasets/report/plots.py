"""Pictures of run sets: S(t) and ES(t) over all samples and by task, and all pictures as files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ScoreError, raises_only
from ..scores import Scores, as_table, error_aware_speedup_score, speedup_score, split_by
from ..scores.records import is_counted
from ..scores.run_sets import Duplicates, device_kind, without_duplicates
from ..scores.variants import find_variant
from .labels import devices_text, line_labels, panel_note, panel_title
from .names import file_names
from .panels import (
    LABEL_POINTS,
    LINE_HEIGHT,
    add_legend,
    label_bottoms,
    label_left,
    label_lines,
    make_panels,
)
from .speedup_plots import (
    log2_speedups,
    plot_latencies,
    plot_samples,
    plot_speedups,
    timed_samples,
)
from .style import Styles, import_figure, ordered_names, save, settings, styles_of

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLES = {"S": "Speedup score S(t)", "ES": "Error-aware speedup score ES(t)"}
NAMES = {"S": "speedup_score", "ES": "error_aware_speedup_score"}
FORGIVEN = {
    False: "t = 1, 2, 3 forgive wrong outputs, crashes, failed compilation",
    True: "t = 1, 2, 3, 4 forgive errors of growing weight",
}
"""The meaning of a positive t in the report's and in upstream's interpretation."""

MAX_BANDS = 4
"""Maximum number of run sets for which intervals are drawn as bands."""

ROUND_SCORES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


@raises_only(ScoreError)
def plot_runs(
    run_sets: Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    p: float | None = None,
    b: float = 0.1,
    variant: str = "report",
    duplicates: Duplicates = "refuse",
) -> list[Path]:
    """Plot the scores, speedups, samples and latencies of run sets and return the files.

    `run_sets` maps a name to the run records of one compiler. If the records cover several tasks,
    there are also pictures by task. A run set has the same colour, marker and line in each picture.

    Raises:
        ScoreError: A run set cannot be scored.
        MissingExtraError: matplotlib is not installed.
    """
    import_figure()
    tables = {
        name: without_duplicates(as_table(runs), duplicates) for name, runs in run_sets.items()
    }
    written = []
    for name, figure in draw_runs(tables, p=p, b=b, variant=variant):
        written += save(figure, out, name)
    return written


def draw_runs(
    tables: Mapping[str, Any], *, p: float | None = None, b: float = 0.1, variant: str = "report"
) -> Iterator[tuple[str, Figure]]:
    """Yield the name and the figure of each picture of run sets, which are tables of records.

    Raises:
        ScoreError: A run set cannot be scored.
    """
    styles = styles_of(list(tables))
    devices = {name: device_kind(table) for name, table in tables.items()}
    groupings: dict[str, Mapping[str, Mapping[str, Any]]] = {"": {"": tables}}
    by_task = _split_by_task(tables, variant)
    if len(by_task) > 1:
        groupings["_by_task"] = by_task
    totals: dict[str, dict[str, dict[str, int]]] = {}
    for metric, score in (("S", speedup_score), ("ES", error_aware_speedup_score)):
        for suffix, panels in groupings.items():
            scores = {
                title: {name: score(table, p, b, variant) for name, table in panel.items()}
                for title, panel in panels.items()
            }
            totals[suffix] = {
                title: {name: score.num_samples for name, score in panel.items()}
                for title, panel in scores.items()
            }
            yield f"{NAMES[metric]}{suffix}", plot_scores(scores, devices, styles)
    for suffix, panels in groupings.items():
        speedups = {
            title: {name: log2_speedups(table, variant) for name, table in panel.items()}
            for title, panel in panels.items()
        }
        yield f"speedups{suffix}", plot_speedups(speedups, totals[suffix], devices, styles)
    timed = {name: timed_samples(table, variant) for name, table in tables.items()}
    yield "latency", plot_latencies(timed, devices, styles)
    names = file_names("samples", list(tables))
    for name, samples in timed.items():
        yield names[name], plot_samples(samples, name, devices[name], styles[name])


def _split_by_task(tables: Mapping[str, pa.Table], variant: str) -> dict[str, dict[str, pa.Table]]:
    """Return the records by task and run set, without parts in which no record counts."""
    parts: dict[str, dict[str, pa.Table]] = {}
    for name, table in tables.items():
        for task, part in split_by(table, "task").items():
            if is_counted(part, find_variant(variant)).any():
                parts.setdefault(task, {})[name] = part
    return dict(sorted(parts.items()))


def plot_scores(
    panels: Mapping[str, Mapping[str, Scores]],
    devices: Mapping[str, str] | None = None,
    styles: Styles | None = None,
) -> Figure:
    """Plot one score over t: a panel per key (a task), a line per run set.

    A single panel has a label beside the end of each line, several panels a legend below them. The
    band is the 95 % interval over families, drawn for at least five families and at most four run
    sets. For t > 0 the line has steps, because only integers t forgive errors.
    """
    figure_type = import_figure()
    names, styles = ordered_names(panels, styles)
    some = next(iter(next(iter(panels.values())).values()))
    is_single = len(panels) == 1
    with settings():
        height = max(3.6, 1.2 + len(names) * LABEL_POINTS * LINE_HEIGHT / 72) if is_single else 2.5
        figure, axes = make_panels(figure_type, len(panels), height)
        lines: dict[str, Any] = {}
        for axis, (title, panel) in zip(axes, panels.items(), strict=True):
            for name, scores in panel.items():
                line = _draw_scores(axis, scores, styles[name], len(names) <= MAX_BANDS)
                lines.setdefault(name, line)
            axis.axhline(1, color="#444444", linewidth=0.8, zorder=1)
            axis.set_title(panel_title(title, panel) if title else "", loc="left", fontsize=8)
        upstream = some.variant.startswith("upstream")
        meaning = FORGIVEN[upstream] if some.metric == "ES" or upstream else ""
        title = [f"{TITLES[some.metric]}: p = {some.p:g}, b = {some.b:g}, variant {some.variant}"]
        label = "tolerance t, ← stricter"
        if is_single:
            title.append("; ".join(panel_note(next(iter(panels.values())).values())))
            label = f"{label}; {meaning}" if meaning else label
        elif meaning:
            title.append(meaning)
        title[0] += devices_text((devices or {}).values())
        for axis in axes:
            _score_axis(axis, some.metric, _score_range(panels), 2 if is_single else 4)
        label_bottoms(axes, label)
        label_left(axes, f"{some.metric}(t), 1 = eager")
        figure.suptitle("\n".join(title), fontsize=10, x=0.01, ha="left")
        labels = line_labels(names)
        if is_single:
            label_lines(figure, axes[0], {labels[name]: line for name, line in lines.items()})
        else:
            add_legend(figure, list(lines.values()), [labels[name] for name in lines])
    return figure


def _draw_scores(axis: Axes, scores: Scores, style: Mapping[str, Any], has_band: bool) -> Any:
    metric = scores.metric
    rows = [row for row in scores if row[metric] is not None]
    above = [row for row in rows if row["t"] >= 0]
    parts: list[tuple[list[dict[str, Any]], str, Literal["post"] | None]]
    parts = [([row for row in rows if row["t"] <= 0], "default", None)]
    if len(above) > 1:
        parts.append((above, "steps-post", "post"))
    line: Any = None
    for part, drawstyle, step in parts:
        t = [row["t"] for row in part]
        (line,) = axis.plot(t, [row[metric] for row in part], drawstyle=drawstyle, **style)
        if has_band and part[0][f"{metric}_low"] is not None:
            low, high = ([row[f"{metric}_{end}"] for row in part] for end in ("low", "high"))
            axis.fill_between(
                t, low, high, step=step, color=style["color"], alpha=0.15, linewidth=0
            )
    return line


def _score_range(panels: Mapping[str, Mapping[str, Scores]]) -> tuple[float, float]:
    """Return the range of the axis: all lines, and bands up to a factor of two beyond them."""
    values = [
        value
        for panel in panels.values()
        for scores in panel.values()
        for value in scores[scores.metric]
        if value is not None
    ]
    return min([1.0, *values]) / 2, max([1.0, *values]) * 2


def _score_axis(axis: Axes, metric: str, shown: tuple[float, float], step: int) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    low, high = max(low, shown[0]), min(high, shown[1])
    axis.set_ylim(low, high)
    ticks = [tick for tick in ROUND_SCORES if low <= tick <= high]
    locator = FixedLocator(ticks) if len(ticks) >= 3 else MaxNLocator(nbins=5)
    axis.yaxis.set_major_locator(locator)
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_major_locator(FixedLocator(range(-8 if step > 2 else -10, 5, step)))
    axis.set_xlim(-10.4, 4.4 if metric == "ES" else max(axis.get_xlim()[1], 0.4))
