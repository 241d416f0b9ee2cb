"""Pictures of run sets: S(t) and ES(t) over all samples and by task, and all pictures as files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import ScoreError, raises_only
from ..scores import Scores, as_table, error_aware_speedup_score, speedup_score, split_by
from ..scores.run_sets import Duplicates, without_duplicates
from .labels import device_of, devices_text, line_labels, panel_note, panel_title
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
from .style import Styles, file_names, import_figure, ordered_names, save, settings, styles_of

if TYPE_CHECKING:
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
    devices = {name: device_of(table) for name, table in tables.items()}
    functions = {"S": speedup_score, "ES": error_aware_speedup_score}
    scores = {
        metric: {name: score(table, p, b, variant) for name, table in tables.items()}
        for metric, score in functions.items()
    }
    by_task: dict[str, dict[str, dict[str, Scores]]] = {"S": {}, "ES": {}}
    speedups_by_task: dict[str, dict[str, Any]] = {}
    for name, table in tables.items():
        for task, part in split_by(table, "task").items():
            try:
                for metric, score in functions.items():
                    by_task[metric].setdefault(task, {})[name] = score(part, p, b, variant)
            except ScoreError:
                continue  # no sample of this task is in N; they are listed in `excluded`
            speedups_by_task.setdefault(task, {})[name] = log2_speedups(part, variant)
    tasks = sorted(speedups_by_task)
    for metric in ("S", "ES"):
        yield NAMES[metric], plot_scores({"": scores[metric]}, devices, styles)
        if len(tasks) > 1:
            panels = {task: by_task[metric][task] for task in tasks}
            yield f"{NAMES[metric]}_by_task", plot_scores(panels, devices, styles)
    speedups = {name: log2_speedups(table, variant) for name, table in tables.items()}
    totals = {"": {name: score.num_samples for name, score in scores["S"].items()}}
    yield "speedups", plot_speedups({"": speedups}, totals, devices, styles)
    if len(tasks) > 1:
        totals = {
            task: {name: score.num_samples for name, score in by_task["S"][task].items()}
            for task in tasks
        }
        by = {task: speedups_by_task[task] for task in tasks}
        yield "speedups_by_task", plot_speedups(by, totals, devices, styles)
    timed = {name: timed_samples(table, variant) for name, table in tables.items()}
    yield "latency", plot_latencies(timed, devices, styles)
    names = file_names("samples", list(tables))
    for name, samples in timed.items():
        yield names[name], plot_samples(samples, name, devices.get(name, ""), styles[name])


def plot_scores(
    panels: Mapping[str, Mapping[str, Scores]],
    devices: Mapping[str, str] | None = None,
    styles: Styles | None = None,
) -> Figure:
    """Plot one score over t: a panel per key (a task), a line per run set.

    A single panel has a label beside the end of each line, several panels a legend below them. The
    band is the 95 % interval over families, drawn for at least five families and at most four run
    sets. For t > 0 the line is a step, because only integer t forgive an error.
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
            title.append(panel_note(next(iter(panels.values())).values()))
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
    rows = [row for row in scores if row[scores.metric] is not None]
    below = [row for row in rows if row["t"] <= 0]
    above = [row for row in rows if row["t"] >= 0]
    metric = scores.metric
    (line,) = axis.plot([row["t"] for row in below], [row[metric] for row in below], **style)
    last = line
    parts: list[tuple[list[dict[str, Any]], Literal["post"] | None]] = [(below, None)]
    if len(above) > 1:
        (last,) = axis.plot(
            [row["t"] for row in above],
            [row[metric] for row in above],
            drawstyle="steps-post",
            **style,
        )
        parts.append((above, "post"))
    for part, step in parts:
        if has_band and part[0][f"{metric}_low"] is not None:
            axis.fill_between(
                [row["t"] for row in part],
                [row[f"{metric}_low"] for row in part],
                [row[f"{metric}_high"] for row in part],
                step=step,
                color=style["color"],
                alpha=0.15,
                linewidth=0,
            )
    return last


def _score_range(panels: Mapping[str, Mapping[str, Scores]]) -> tuple[float, float]:
    """Return the range of the axis: all lines, and bands up to twice that range."""
    every = [
        value
        for panel in panels.values()
        for scores in panel.values()
        for value in scores[scores.metric]
        if value is not None
    ]
    return min([1.0, *every]) / 2, max([1.0, *every]) * 2


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
