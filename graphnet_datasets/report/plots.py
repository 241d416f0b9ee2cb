"""S(t), ES(t) and the speedups of run sets, over all samples and by task."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import ScoreError, raises_only
from ..scores import Scores, as_table, error_aware_speedup_score, speedup_score, split_by
from ..scores.records import make_records
from ..scores.run_sets import Duplicates, without_duplicates
from ..scores.variants import TOLERANCE, find_variant
from .labels import count_label, device_of, legend_label, panel_title, short, times, with_device
from .style import COLOURS, import_figure, line_style, save, settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES = 6.3
"""The text width of an A4 page."""

TITLES = {"S": "Speedup score S(t)", "ES": "Error-aware speedup score ES(t)"}
NAMES = {"S": "speedup_score", "ES": "error_aware_speedup_score"}

MIN_FOR_VIOLIN = 20
"""Below this number of samples, no density is drawn, only points."""
MAX_POINTS = 300
"""Maximum number of points beside a violin; of more samples, every k-th by size is drawn."""
FORGIVEN = {
    False: "t = 1, 2, 3 forgive wrong outputs, crashes, failed compilation",
    True: "t = 1, 2, 3, 4 forgive errors of growing weight",
}
"""The meaning of a positive t in the report's and in upstream's interpretation."""

MAX_LABELS = 5
"""Maximum number of run sets labelled under their violins; otherwise a legend names them."""
MAX_BANDS = 4
"""Maximum number of run sets for which intervals are drawn as bands."""

ROUND_SCORES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
ROUND_SPEEDUPS = (
    *(0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95),
    *(1, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 3.5, 4),
)
"""Ticks for speedups within a factor of four; otherwise powers of two."""

MAX_TICKS = 12
"""Maximum number of speedup labels in a panel of minimum height."""

Floats = npt.NDArray[np.float64]


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
    """Plot S(t), ES(t) and the speedups of run sets into a directory and return the files.

    `run_sets` maps a name to the run records of one compiler. If the records cover several tasks,
    there are also pictures by task.

    Raises:
        ScoreError: A run set cannot be scored.
        MissingExtraError: matplotlib is not installed.
    """
    import_figure()
    tables = {
        name: without_duplicates(as_table(runs), duplicates) for name, runs in run_sets.items()
    }
    scores: dict[str, dict[str, Scores]] = {"S": {}, "ES": {}}
    by_task: dict[str, dict[str, dict[str, Scores]]] = {"S": {}, "ES": {}}
    speedups: dict[str, Floats] = {}
    speedups_by_task: dict[str, dict[str, Floats]] = {}
    devices = {name: device_of(table) for name, table in tables.items()}
    for name, table in tables.items():
        for metric, score in (("S", speedup_score), ("ES", error_aware_speedup_score)):
            scores[metric][name] = score(table, p, b, variant)
        speedups[name] = log2_speedups(table, variant)
        for task, part in split_by(table, "task").items():
            try:
                for metric, score in (("S", speedup_score), ("ES", error_aware_speedup_score)):
                    by_task[metric].setdefault(task, {})[name] = score(part, p, b, variant)
            except ScoreError:
                continue  # no sample of this task is in N; they are listed in `excluded`
            speedups_by_task.setdefault(task, {})[name] = log2_speedups(part, variant)
    tasks = sorted(speedups_by_task)
    written = []
    for metric in ("S", "ES"):
        written += save(plot_scores({"": scores[metric]}, devices), out, NAMES[metric])
        if len(tasks) > 1:
            written += save(
                plot_scores({task: by_task[metric][task] for task in tasks}, devices),
                out,
                f"{NAMES[metric]}_by_task",
            )
    totals = {"": {name: score.num_samples for name, score in scores["S"].items()}}
    written += save(plot_speedups({"": speedups}, totals, devices), out, "speedups")
    if len(tasks) > 1:
        totals = {
            task: {name: score.num_samples for name, score in by_task["S"][task].items()}
            for task in tasks
        }
        by = {task: speedups_by_task[task] for task in tasks}
        written += save(plot_speedups(by, totals, devices), out, "speedups_by_task")
    return written


def log2_speedups(runs: Any, variant: str = "report", tolerance: int = TOLERANCE) -> Floats:
    """Return log2 of the speedups of the samples that are right at `tolerance`, in ascending order.

    A sample is right if its outputs pass and zeros would not (`Records.is_right_at`).

    >>> runs = [{"sample_id": s, "status": "ok", "speedup": 4.0, "min_t": t}
    ...     for s, t in (("a", -5.0), ("b", 2.0))]
    >>> log2_speedups(runs)
    array([2.])
    """
    records = make_records(as_table(runs), find_variant(variant))
    return np.sort(records.log_speedup[records.is_right_at(tolerance)] / math.log(2))


def plot_scores(
    panels: Mapping[str, Mapping[str, Scores]], devices: Mapping[str, str] | None = None
) -> Figure:
    """Plot one score over t: a panel per key (a task), a line per run set.

    The band is the 95 % interval over families, drawn for at least five families and at most four
    run sets. For t > 0 the line is a step, because only integer t forgive an error. The legend
    contains N, the device and the share of samples on which zeros would pass.
    """
    figure_type = import_figure()
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    styles = {name: line_style(index) for index, name in enumerate(names)}
    some = next(iter(next(iter(panels.values())).values()))
    with settings():
        figure, axes = _panels(figure_type, panels, height_inches=2.4 if len(panels) > 1 else 3.4)
        labels: dict[str, Any] = {}
        for axis, (title, panel) in zip(axes, panels.items(), strict=True):
            for name, scores in panel.items():
                labels.setdefault(
                    name, _draw_scores(axis, scores, styles[name], len(names) <= MAX_BANDS)
                )
            axis.axhline(1, color="#444444", linewidth=0.8, zorder=1)
            axis.set_title(panel_title(title, panel) if title else "", loc="left", fontsize=8)
        upstream = some.variant.startswith("upstream")
        meaning = FORGIVEN[upstream] if some.metric == "ES" or upstream else ""
        title = f"{TITLES[some.metric]}: p = {some.p:g}, b = {some.b:g}, variant {some.variant}"
        label = "tolerance t, ← stricter"
        if meaning and len(panels) == 1:
            label = f"{label}; {meaning}"
        elif meaning:
            title = f"{title}\n{meaning}"
        for axis in axes:
            _score_axis(axis, some.metric, _score_range(panels), 2 if len(panels) == 1 else 4)
            axis.set_xlabel(label, fontsize=8)
        _label_left(axes, f"{some.metric}(t), 1 = eager")
        legend = names
        if len(panels) == 1:
            (panel,) = panels.values()
            legend = [
                legend_label(name, panel[name], (devices or {}).get(name, "")) for name in names
            ]
        elif devices:
            legend = [with_device(name, devices.get(name, "")) for name in names]
        _finish(
            figure,
            title,
            list(labels.values()),
            legend,
        )
    return figure


def plot_speedups(
    panels: Mapping[str, Mapping[str, Floats]],
    totals: Mapping[str, Mapping[str, int]] | None = None,
    devices: Mapping[str, str] | None = None,
) -> Figure:
    """Plot the distribution of log2 speedups of correct samples: a violin per run set.

    The white bar is the interquartile range, the white dot the median. Below `MIN_FOR_VIOLIN`
    samples only points are drawn. `totals` contains the N of each run set.
    """
    figure_type = import_figure()
    from matplotlib.patches import Patch

    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    is_labelled = len(panels) == 1 and len(names) <= MAX_LABELS
    with settings():
        figure, axes = _panels(figure_type, panels, height_inches=2.6 if len(panels) > 1 else 3.4)
        for axis, (title, panel) in zip(axes, panels.items(), strict=True):
            axis.axhline(0, color="#444444", linewidth=0.8, zorder=1)
            for place, name in enumerate(panel):
                index = names.index(name)
                _draw_violin(axis, place, panel[name], COLOURS[index % len(COLOURS)])
            labels = [
                count_label(len(values), (totals or {}).get(title, {}).get(name), is_labelled)
                for name, values in panel.items()
            ]
            if is_labelled:
                labels = [
                    f"{short(name)}\n{label}" for name, label in zip(panel, labels, strict=True)
                ]
            axis.set_xticks(range(len(panel)), labels)
            is_crowded = not is_labelled and len(panel) > 3
            axis.tick_params("x", length=0, labelsize=7 if is_crowded else 8)
            if is_crowded:
                axis.tick_params("x", rotation=90)
            axis.set_xlim(-0.6, len(panel) - 0.4)
            axis.grid(False, axis="x")
            axis.set_title(short(title), loc="left", fontsize=9)
            _speedup_axis(axis)
        _label_left(axes, "speedup over eager (log2 scale)")
        patches = [
            Patch(color=COLOURS[index % len(COLOURS)], alpha=0.6) for index in range(len(names))
        ]
        device_names = sorted({device for device in (devices or {}).values() if device})
        where = f" on {', '.join(device_names)}" if device_names else ""
        _finish(
            figure,
            f"Speedups of the samples that are correct at t = {TOLERANCE}{where},\n"
            "without those on which zeros would pass there too",
            [] if is_labelled else patches,
            names,
        )
    return figure


def _panels(
    figure_type: type[Figure], panels: Mapping[str, Any], height_inches: float
) -> tuple[Figure, list[Axes]]:
    num_columns = min(len(panels), 3)
    num_rows = math.ceil(len(panels) / num_columns)
    figure = figure_type(figsize=(WIDTH_INCHES, height_inches * num_rows + 0.5))
    # A small margin prevents the last tick label from being cut off.
    figure.set_layout_engine("constrained", rect=(0, 0.01, 0.985, 0.98))
    grid = figure.subplots(num_rows, num_columns, squeeze=False, sharey=True)
    axes = list(grid.flat)
    for unused in axes[len(panels) :]:
        unused.remove()
    return figure, axes[: len(panels)]


def _label_left(axes: Sequence[Axes], label: str) -> None:
    """Label the vertical axis of each row, which its panels share."""
    for axis in axes:
        spec = axis.get_subplotspec()
        if spec is not None and spec.is_first_col():
            axis.set_ylabel(label, fontsize=9)


def _draw_scores(axis: Axes, scores: Scores, style: dict[str, Any], has_band: bool) -> Any:
    rows = [row for row in scores if row[scores.metric] is not None]
    below = [row for row in rows if row["t"] <= 0]
    above = [row for row in rows if row["t"] >= 0]
    metric = scores.metric
    (line,) = axis.plot([row["t"] for row in below], [row[metric] for row in below], **style)
    parts: list[tuple[list[dict[str, Any]], Literal["post"] | None]] = [(below, None)]
    if len(above) > 1:
        axis.plot(
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
    return line


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


def _speedup_axis(axis: Axes) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

    low, high = axis.get_ylim()
    ticks = _apart(
        [math.log2(speedup) for speedup in ROUND_SPEEDUPS if 2**low <= speedup <= 2**high],
        (high - low) / MAX_TICKS,
    )
    is_narrow = high - low < 2
    locator = (
        FixedLocator(ticks)
        if is_narrow and len(ticks) >= 3
        else MaxNLocator(nbins=7, integer=not is_narrow)
    )
    axis.yaxis.set_major_locator(locator)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: times(value)))


def _apart(ticks: Sequence[float], least: float) -> list[float]:
    """Drop ticks closer than `least` to another tick, starting from 0 in both directions.

    >>> _apart([-0.2, -0.1, 0.0, 0.05, 0.2, 0.3], 0.15)
    [-0.2, 0.0, 0.2]
    """
    values: list[float] = []
    for tick in sorted(ticks, key=abs):
        if all(abs(tick - other) >= least for other in values):
            values.append(tick)
    return sorted(values)


def _draw_violin(axis: Axes, place: int, values: Floats, colour: str) -> None:
    if len(values) == 0:
        # Vertical text in axis units, because there is no space beside or above it.
        axis.text(
            *(place, 0.04, "none correct"), transform=axis.get_xaxis_transform(), rotation=90,
            ha="center", va="bottom", color="#444444", size=8,
        )  # fmt: skip
        return
    if len(values) >= MIN_FOR_VIOLIN and np.ptp(values) > 1e-6:
        parts: Any = axis.violinplot(values, [place], widths=0.8, showextrema=False)
        for body in parts["bodies"]:
            body.set(facecolor=colour, edgecolor=colour, alpha=0.35, linewidth=1)
    step = math.ceil(len(values) / MAX_POINTS)
    shown = values[::step]
    # Spread points by rank, so that equal records produce equal pictures.
    spread = 0.18 * (np.arange(len(shown)) * 0.618034 % 1 - 0.5)
    axis.scatter(place + spread, shown, s=7, color=colour, alpha=0.75, linewidths=0, zorder=3)
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    if len(values) >= MIN_FOR_VIOLIN:
        axis.vlines(place, low, high, color="black", linewidth=4, zorder=4)
        axis.vlines(place, low, high, color="white", linewidth=2.5, zorder=5)
    axis.scatter([place], [median], s=26, color="white", edgecolor="black", zorder=6)


def _finish(figure: Figure, title: str, lines: Sequence[Any], names: Sequence[str]) -> None:
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    if lines:
        shown = [short(name, 100) for name in names]
        columns = max(1, min(len(names), 3, 75 // (max(map(len, shown)) + 6)))
        figure.legend(lines, shown, loc="outside lower center", ncols=columns)
