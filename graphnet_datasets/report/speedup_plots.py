"""Pictures of speedups: their distribution, each sample, and speedups over eager's time."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..scores import as_table
from ..scores.latency import SIZE_LIMITS_MS, eager_ms
from ..scores.records import Floats, make_records
from ..scores.variants import TOLERANCE, find_variant
from ..scores.verdicts import OUTCOME_OF, Outcome, verdicts
from .labels import count_label, devices_text, line_labels, middle_out, short, times
from .panels import label_bottoms, label_left, make_panels
from .style import WIDTH_INCHES, Styles, import_figure, ordered_names, settings, styles_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

MIN_FOR_VIOLIN = 20
"""Below this number of samples, no density is drawn, only points."""
MAX_POINTS = 300
"""Maximum number of points beside a violin. Of more samples, every k-th by speedup is drawn."""
MAX_BARS = 40
"""Maximum number of samples with a bar: half of them the slowest, half the fastest."""
MAX_FAILED_ROWS = 15
"""Maximum number of wrong and failed samples that are named below the bars."""
MAX_SAMPLE_NAME = 46
BINS_PER_DECADE = 3
MIN_IN_BIN = 3
"""Minimum number of samples of a bin of eager times for a point of the median line."""

ROUND_SPEEDUPS = (
    *(0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95),
    *(1, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 3.5, 4),
)
"""Ticks for speedups within a factor of four; otherwise powers of two."""

GREY, DARK = "#888888", "#444444"


@dataclasses.dataclass(frozen=True, slots=True)
class TimedSample:
    """One run of a sample: its outcome, log2 of its speedup and interval, and eager's time in ms.

    Unmeasured values are NaN.
    """

    id: str
    outcome: Outcome
    log2_speedup: float
    low: float
    high: float
    eager_ms: float


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


def timed_samples(runs: Any, variant: str = "report") -> list[TimedSample]:
    """Return the runs of one arm, the slowest first, then those without a speedup.

    >>> runs = [{"sample_id": "a", "status": "ok", "speedup": 4.0, "min_t": -5.0,
    ...     "baseline_latency_ms": [2.0, 3.0, 9.0]}]
    >>> (sample,) = timed_samples(runs)
    >>> sample.outcome, sample.log2_speedup, sample.eager_ms
    (<Outcome.RIGHT: 'right'>, 2.0, 3.0)
    """
    table = as_table(runs)
    columns = [
        [math.nan if not value or value <= 0 else math.log2(value) for value in column.to_pylist()]
        for column in (table["speedup"], table["speedup_low"], table["speedup_high"])
    ]
    samples = [
        TimedSample(str(name), OUTCOME_OF[verdict], *values)
        for name, verdict, *values in zip(
            table["sample_id"].to_pylist(),
            verdicts(table, find_variant(variant)),
            *columns,
            eager_ms(table).tolist(),
            strict=True,
        )
    ]
    return sorted(samples, key=lambda row: (math.isnan(row.log2_speedup), row.log2_speedup, row.id))


def plot_speedups(
    panels: Mapping[str, Mapping[str, Floats]],
    totals: Mapping[str, Mapping[str, int]] | None = None,
    devices: Mapping[str, str] | None = None,
    styles: Styles | None = None,
) -> Figure:
    """Plot the distribution of log2 speedups of correct samples, a violin in a row per run set.

    The white bar is the interquartile range, the white dot the median. Below `MIN_FOR_VIOLIN`
    samples only points are drawn. `totals` contains the N of each run set.
    """
    names, styles = ordered_names(panels, styles)
    labels = line_labels(names)
    with settings():
        height = 0.9 + max(0.26 * len(names), 0.5)
        figure, axes = make_panels(import_figure(), len(panels), height)
        for axis, (title, panel) in zip(axes, panels.items(), strict=True):
            axis.axvline(0, color=DARK, linewidth=0.8, zorder=1)
            total = (totals or {}).get(title, {})
            for place, name in enumerate(names):
                if name not in panel:
                    continue
                values = panel[name]
                _draw_violin(axis, place, values, styles[name]["color"])
                axis.text(
                    1.01, place, count_label(len(values), total.get(name)), size=7, color=DARK,
                    va="center", transform=axis.get_yaxis_transform(),
                )  # fmt: skip
            axis.set_yticks(range(len(names)), [labels[name] for name in names], fontsize=8)
            axis.tick_params("y", length=0)
            axis.set_ylim(len(names) - 0.4, -0.6)
            axis.grid(visible=False, axis="y")
            axis.set_title(short(title), loc="left", fontsize=9)
            _speedup_ticks(axis.xaxis, 9 if len(panels) == 1 else 3)
        label_bottoms(axes, "speedup (log2 scale)")
        figure.suptitle(
            f"Speedups of the samples that are correct at t = {TOLERANCE}"
            f"{devices_text((devices or {}).values())},\n"
            "without samples on which zeros would pass; on the right: number drawn of N",
            fontsize=10, x=0.01, ha="left",
        )  # fmt: skip
    return figure


def plot_samples(
    samples: Sequence[TimedSample],
    name: str = "",
    device: str = "",
    style: Mapping[str, Any] | None = None,
) -> Figure:
    """Plot the speedup of each sample of one run set: sorted bars with 95 % intervals of timing.

    Of more than `MAX_BARS` right samples, the slowest and the fastest are drawn. Wrong and failed
    samples are named below them.
    """
    colour = (style or styles_of([name])[name])["color"]
    rows = _sample_rows(samples)
    bars = [(place, row) for place, row in enumerate(rows) if isinstance(row, TimedSample)]
    counts = Counter(sample.outcome for sample in samples)
    with settings():
        figure = import_figure()(figsize=(WIDTH_INCHES, 1.35 + 0.17 * max(len(rows), 3)))
        figure.set_layout_engine("constrained", rect=(0, 0.005, 0.985, 0.99))
        axis = figure.subplots()
        right = [(place, row) for place, row in bars if row.outcome is Outcome.RIGHT]
        values, lows, highs = (
            np.array([getattr(row, name) for _, row in right])
            for name in ("log2_speedup", "low", "high")
        )
        errors = np.fmax([values - lows, highs - values], 0)  # 0 without an interval
        axis.barh(
            [place for place, _ in right], values, height=0.72, color=colour, alpha=0.75,
            xerr=errors, error_kw={"elinewidth": 1, "ecolor": "black"},
        )  # fmt: skip
        axis.axvline(0, color=DARK, linewidth=0.8)
        for place, row in bars:
            is_bad = row.outcome is not Outcome.RIGHT
            axis.text(
                1.01, place, _result_text(row), size=7, va="center",
                transform=axis.get_yaxis_transform(),
                color="#B3261E" if is_bad else "black", weight="bold" if is_bad else "normal",
            )  # fmt: skip
        axis.set_yticks(
            range(len(rows)),
            [row if isinstance(row, str) else middle_out(row.id, MAX_SAMPLE_NAME) for row in rows],
            fontsize=7,
        )
        axis.tick_params("y", length=0)
        axis.set_ylim(max(len(rows), 1) - 0.3, -0.7)
        axis.grid(visible=False, axis="y")
        _speedup_ticks(axis.xaxis, 7)
        axis.set_xlabel("speedup over eager (log2 scale), with the interval of its timing")
        listed = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in Outcome)
        figure.suptitle(
            f"{middle_out(name, 80) or 'Speedups'}{devices_text([device])}\n"
            f"{len(samples):,} samples: {listed}",
            fontsize=10, x=0.01, ha="left",
        )  # fmt: skip
    return figure


def plot_latencies(
    run_sets: Mapping[str, Sequence[TimedSample]],
    devices: Mapping[str, str] | None = None,
    styles: Styles | None = None,
) -> Figure:
    """Plot speedups over eager's time: a panel per run set, a point per right sample.

    The line connects the medians of `BINS_PER_DECADE` bins per factor of ten. Short calls show the
    overhead of a compiler, long ones its kernels. Crosses at the bottom are wrong or failed samples
    whose eager time is known.
    """
    styles = styles or styles_of(list(run_sets))
    labels = line_labels(list(run_sets), 38 if len(run_sets) > 4 else 56)
    with settings():
        num_columns = 1 if len(run_sets) == 1 else 2 if len(run_sets) <= 4 else 3
        height = 3.4 if len(run_sets) == 1 else 2.1
        figure, axes = make_panels(import_figure(), len(run_sets), height, num_columns)
        for axis, (name, samples) in zip(axes, run_sets.items(), strict=True):
            _draw_latencies(axis, samples, styles[name])
            counts = Counter(sample.outcome for sample in samples)
            shown = (Outcome.RIGHT, Outcome.WRONG, Outcome.FAILED)
            listed = ", ".join(f"{counts[outcome]:,} {outcome}" for outcome in shown)
            axis.set_title(f"{labels[name]}\n{listed}", loc="left", fontsize=8)
        _latency_axes(axes, list(run_sets.values()))
        label_bottoms(axes, "eager, ms per call")
        label_left(axes, "speedup")
        figure.suptitle(
            f"Speedup over eager's time{devices_text((devices or {}).values())}: "
            "overhead dominates below 1 ms, kernels above 10 ms\n"
            "line: median of samples with similar eager times; crosses: wrong or failed",
            fontsize=10, x=0.01, ha="left",
        )  # fmt: skip
    return figure


def _draw_latencies(axis: Axes, samples: Sequence[TimedSample], style: Mapping[str, Any]) -> None:
    right = [
        row
        for row in samples
        if row.outcome is Outcome.RIGHT
        and 0 < row.eager_ms < math.inf
        and math.isfinite(row.log2_speedup)
    ]
    times_ms = np.array([row.eager_ms for row in right])
    speedups = np.array([row.log2_speedup for row in right])
    axis.scatter(times_ms, speedups, s=9, color=style["color"], alpha=0.45, linewidths=0, zorder=3)
    middles, medians = [], []
    bins = np.floor(np.log10(times_ms) * BINS_PER_DECADE)
    for number in np.unique(bins):
        chosen = bins == number
        if chosen.sum() >= MIN_IN_BIN:
            middles.append(10 ** ((number + 0.5) / BINS_PER_DECADE))
            medians.append(np.median(speedups[chosen]))
    axis.plot(middles, medians, color="white", linewidth=4, zorder=4)
    axis.plot(middles, medians, zorder=5, **{**style, "linewidth": 2})
    bad = [
        row.eager_ms
        for row in samples
        if row.outcome in (Outcome.WRONG, Outcome.FAILED) and row.eager_ms > 0
    ]
    axis.plot(
        bad, [0.04] * len(bad), "x", color="#B3261E", markersize=4,
        transform=axis.get_xaxis_transform(), zorder=6,
    )  # fmt: skip
    axis.axhline(0, color=DARK, linewidth=0.8, zorder=2)


def _latency_axes(axes: Sequence[Axes], run_sets: Sequence[Sequence[TimedSample]]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    times_ms = [row.eager_ms for samples in run_sets for row in samples if row.eager_ms > 0]
    low = min([SIZE_LIMITS_MS[0] / 2, *times_ms]) / 1.3
    high = max([SIZE_LIMITS_MS[-1] * 2, *times_ms]) * 1.3
    for axis in axes:
        axis.set_xscale("log")
        axis.set_xlim(low, high)
        axis.xaxis.set_major_locator(LogLocator(numticks=7))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.axvspan(*SIZE_LIMITS_MS, color="#F0F0F0", zorder=0, linewidth=0)
        _speedup_ticks(axis.yaxis, 7)


def _sample_rows(samples: Sequence[TimedSample]) -> list[TimedSample | str]:
    """Return the rows of the chart of samples; a string describes samples that are left out."""
    right = [row for row in samples if row.outcome is Outcome.RIGHT]
    rows: list[TimedSample | str] = list(right)
    if len(right) > MAX_BARS:
        half = MAX_BARS // 2
        between = f"… {len(right) - 2 * half:,} samples between …"
        rows = [*right[:half], between, *right[-half:]]
    bad = [row for row in samples if row.outcome in (Outcome.WRONG, Outcome.FAILED)]
    bad.sort(key=lambda row: (row.outcome is Outcome.FAILED, row.id))
    rows += bad[:MAX_FAILED_ROWS]
    if len(bad) > MAX_FAILED_ROWS:
        rows.append(f"… {len(bad) - MAX_FAILED_ROWS:,} more wrong or failed …")
    return rows


def _result_text(row: TimedSample) -> str:
    if row.outcome is not Outcome.RIGHT:
        return str(row.outcome).upper() if row.outcome is Outcome.WRONG else str(row.outcome)
    if math.isnan(row.low) or math.isnan(row.high):
        return times(row.log2_speedup)
    return f"{times(row.log2_speedup)} ({times(row.low)[:-1]} to {times(row.high)[:-1]})"


def _speedup_ticks(ruler: Axis, max_ticks: int) -> None:
    """Label an axis of log2 speedups with multiples of eager."""
    from matplotlib.axis import XAxis
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

    low, high = sorted(ruler.get_view_interval())
    if low < -6 and isinstance(ruler, XAxis):
        max_ticks = max_ticks * 2 // 3  # labels such as "0.0039x" are wide
    ticks = [tick for tick in map(math.log2, ROUND_SPEEDUPS) if low <= tick <= high]
    ticks = _apart(ticks, (high - low) / max_ticks)
    is_narrow = high - low < 2
    locator = (
        FixedLocator(ticks)
        if is_narrow and len(ticks) >= 3
        else MaxNLocator(nbins=max_ticks, integer=not is_narrow)
    )
    ruler.set_major_locator(locator)
    digits = 3 if is_narrow else 2
    ruler.set_major_formatter(FuncFormatter(lambda value, _: times(value, digits)))


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
        axis.text(
            *(0.02, place, "none correct"), transform=axis.get_yaxis_transform(),
            va="center", color=DARK, size=8,
        )  # fmt: skip
        return
    if len(values) >= MIN_FOR_VIOLIN and np.ptp(values) > 1e-6:
        parts: Any = axis.violinplot(
            values, [place], widths=0.8, showextrema=False, orientation="horizontal"
        )
        for body in parts["bodies"]:
            body.set(facecolor=colour, edgecolor=colour, alpha=0.35, linewidth=1)
    step = math.ceil(len(values) / MAX_POINTS)
    shown = values[::step]
    # Spread points by rank, so that equal records produce equal pictures.
    offsets = 0.3 * (np.arange(len(shown)) * 0.618034 % 1 - 0.5)
    axis.scatter(shown, place + offsets, s=5, color=colour, alpha=0.7, linewidths=0, zorder=3)
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    if len(values) >= MIN_FOR_VIOLIN:
        axis.hlines(place, low, high, color="black", linewidth=4, zorder=4)
        axis.hlines(place, low, high, color="white", linewidth=2.5, zorder=5)
    axis.scatter([median], [place], s=20, color="white", edgecolor="black", zorder=6)
