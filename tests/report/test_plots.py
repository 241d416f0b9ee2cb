"""Pictures: what is drawn, in which files, and what odd run sets do."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphnet_datasets.errors import ScoreError
from graphnet_datasets.scores import error_aware_speedup_score, speedup_score

from ..scores.run_rows import BROKEN_EAGER, FOUR, make_run

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from graphnet_datasets.report import (
    plot_latencies,
    plot_runs,
    plot_samples,
    plot_scores,
    plot_speedups,
)
from graphnet_datasets.report.plots import draw_runs
from graphnet_datasets.report.speedup_plots import MAX_BARS, log2_speedups, timed_samples
from graphnet_datasets.scores import as_table

BY_TASK = ["speedup_score", "error_aware_speedup_score", "speedups"]


def runs_of(compiler: str, scale: float, count: int = 12) -> list[dict[str, Any]]:
    return [
        make_run(
            f"{index}",
            scale * (1 + index / count),
            compiler=compiler,
            family=str(index % 5),
            task=("cv", "nlp")[index % 2],
        )
        for index in range(count)
    ]


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


BROKEN = BROKEN_EAGER | {"task": "audio", "compiler": "a"}
TWO = {"a": [*runs_of("a", 1.0), BROKEN], "b": runs_of("b", 0.7)}


@pytest.fixture(scope="module")
def plots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """Pictures of two run sets, drawn once, of which one has a task in which no run counts."""
    directory = tmp_path_factory.mktemp("plots")
    return directory, plot_runs(TWO, directory)


def test_all_pictures_are_written_in_both_formats(plots: tuple[Path, list[Path]]) -> None:
    directory, written = plots
    stems = [
        *BY_TASK,
        *(f"{name}_by_task" for name in BY_TASK),
        "latency",
        "samples_a",
        "samples_b",
    ]
    expected = {f"{stem}.{suffix}" for stem in stems for suffix in ("png", "svg")}
    assert {path.name for path in written} == expected
    assert {path.name for path in directory.iterdir()} == expected
    for path in written:
        if path.suffix == ".png":
            assert is_png(path)
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")  # noqa: S314


def test_one_task_has_no_pictures_by_task(tmp_path: Path) -> None:
    written = plot_runs({"a": [make_run("x", 2.0), make_run("y", 3.0)]}, tmp_path)
    assert sorted({path.stem for path in written}) == sorted([*BY_TASK, "latency", "samples"])


@pytest.mark.slow
def test_the_same_runs_give_the_same_files(plots: tuple[Path, list[Path]], tmp_path: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    for path in plot_runs(TWO, tmp_path):
        assert path.read_bytes() == (plots[0] / path.name).read_bytes(), path.name
    assert dict(matplotlib.rcParams) == before, "the user's settings stay as they are"


def test_the_lines_are_the_scores() -> None:
    scores = error_aware_speedup_score(FOUR)
    (axis,) = plot_scores({"": {"inductor": scores}}).axes
    below, above, _ = axis.lines[:3]
    assert list(below.get_xdata()) == list(range(-10, 1))
    np.testing.assert_array_equal(below.get_ydata(), scores["ES"][:11])
    np.testing.assert_array_equal(above.get_ydata(), scores["ES"][10:])
    assert (below.get_drawstyle(), above.get_drawstyle()) == ("default", "steps-post")


def test_s_of_the_report_ends_at_zero() -> None:
    (axis,) = plot_scores({"": {"inductor": speedup_score(FOUR)}}).axes
    assert [len(line.get_xdata()) for line in axis.lines[:2]] == [11, 2]


def test_the_title_contains_p_b_and_variant() -> None:
    figure = plot_scores(
        {"": {"x": speedup_score(FOUR, p=0, b=0.2, variant="upstream")}}, {"x": "cuda"}
    )
    assert figure.get_suptitle().splitlines() == [
        "Speedup score S(t): p = 0, b = 0.2, variant upstream on cuda",
        "N = 4; zeros pass 0 % at t = -3, 25 % at t = 0",
    ]
    assert [text.get_text() for text in figure.axes[0].texts] == ["x"]


def test_the_axis_labels_strictness_and_forgiven_errors() -> None:
    meaning = "t = 1, 2, 3 forgive wrong outputs, crashes, failed compilation"
    scores = error_aware_speedup_score(FOUR)
    (axis,) = plot_scores({"": {"x": scores}}).axes
    assert axis.get_xlabel() == f"tolerance t, ← stricter; {meaning}"
    figure = plot_scores({"cv": {"x": scores}, "nlp": {"x": scores}})
    assert figure.get_suptitle().splitlines()[1] == meaning
    assert {axis.get_xlabel() for axis in figure.axes} == {"tolerance t, ← stricter"}
    (axis,) = plot_scores({"": {"x": speedup_score(FOUR)}}).axes
    assert axis.get_xlabel() == "tolerance t, ← stricter", "S has no positive t"


def test_rows_show_the_number_of_samples_and_the_total() -> None:
    (axis,) = plot_speedups({"": {"x": np.linspace(-1, 1, 895)}}, {"": {"x": 1272}}).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["x"]
    assert [text.get_text() for text in axis.texts] == ["895 of 1,272"]


@pytest.mark.parametrize(("count", "violins"), [(1, 0), (19, 0), (20, 1), (500, 1)])
def test_violins_begin_at_twenty_points(count: int, violins: int) -> None:
    (axis,) = plot_speedups({"": {"x": np.linspace(-1, 1, count)}}).axes
    bodies = [
        body for body in axis.collections if type(body).__name__ == "FillBetweenPolyCollection"
    ]
    assert len(bodies) == violins


def test_a_wide_band_does_not_flatten_the_lines() -> None:
    runs = [make_run(str(i), 2.0**i, family=str(i), min_t=-9.0 + i) for i in range(6)]
    scores = speedup_score(runs)
    assert scores.at(-4)["S_high"] > 3 * max(scores["S"][:11])
    (axis,) = plot_scores({"": {"x": scores}}).axes
    assert axis.get_ylim()[1] <= 2 * max(scores["S"][:11])


def test_violins_hold_the_correct_samples_only() -> None:
    runs = [*FOUR, make_run("wrong", 8.0, min_t=1.0)]
    assert log2_speedups(runs).tolist() == [1.0]
    assert log2_speedups(runs, tolerance=-2).tolist() == [-1.0, 1.0]
    (axis,) = plot_speedups({"": {"x": np.linspace(-1, 1, 9), "y": np.array([0.5])}}).axes
    assert [text.get_text() for text in axis.texts] == ["9", "1"]


@pytest.mark.parametrize(
    "values", [[], [0.0], [1.0] * 20, [-40.0, 40.0] * 3, list(np.linspace(-3, 3, 5000))]
)
def test_violins_of_odd_sets_can_be_drawn(tmp_path: Path, values: list[float]) -> None:
    plot_speedups({"": {"x": np.array(values)}}).savefig(tmp_path / "x.png")
    assert is_png(tmp_path / "x.png")


def test_twelve_run_sets_differ_in_more_than_colour() -> None:
    panel = {str(index): speedup_score(runs_of("x", 1.0 + index)) for index in range(12)}
    (axis,) = plot_scores({"": panel}).axes
    styles = [
        (line.get_color(), line.get_marker(), line.get_linestyle()) for line in axis.lines[:12]
    ]
    assert len(set(styles)) == 12
    assert len({style[1:] for style in styles}) == 12
    assert not axis.collections, "bands of so many run sets hide each other"


@pytest.mark.parametrize("name", [r"$\frac{1", "_hidden", "x" * 300, "<b>&"])
def test_names_are_no_formulas(tmp_path: Path, name: str) -> None:
    figure = plot_scores({name: {name: speedup_score(FOUR)}})
    figure.savefig(tmp_path / "scores.svg")
    plot_speedups({"": {name: np.ones(3)}}).savefig(tmp_path / "speedups.svg")
    assert len(figure.axes[0].texts) == 1


def test_nothing_to_score_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ScoreError, match=r"^There is nothing to score: "):
        plot_runs({"x": [BROKEN_EAGER]}, tmp_path / "plots")
    assert not (tmp_path / "plots").exists()


def test_without_matplotlib_the_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from graphnet_datasets.errors import MissingExtraError\n"
        "from graphnet_datasets.report import plot_runs\n"
        "try: plot_runs({}, 'nowhere')\n"
        "except MissingExtraError as error: print(error)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert result.stdout == (
        "Drawing plots needs the package `matplotlib`, which is not installed. Install it with "
        "`pip install 'graphnet-datasets[report]'`.\n"
    )


def test_no_speedup_is_drawn_at_infinity() -> None:
    assert all(math.isfinite(value) for value in log2_speedups(FOUR))


def boxes_of(figure: Any) -> list[tuple[str, Any]]:
    """Return every text that is drawn in a figure and its extent, after the layout."""
    figure.draw_without_rendering()
    texts = [figure._suptitle] if figure._suptitle else []
    for axis in figure.axes:
        texts += [*axis.texts, axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label]
        for ruler, (low, high) in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
            low, high = sorted((low, high))
            texts += [
                tick.label1 for tick in ruler.get_major_ticks() if low <= tick.get_loc() <= high
            ]
    texts += [text for legend in figure.legends for text in legend.get_texts()]
    return [
        (text.get_text(), text.get_window_extent())
        for text in texts
        if text.get_text() and text.get_visible()
    ]


def assert_legible(figure: Any) -> None:
    """Assert that no text of a figure is cut off or lies on another text."""
    boxes = boxes_of(figure)
    page = figure.bbox
    for text, box in boxes:
        assert box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1, text
        assert box.y0 >= page.y0 - 1 and box.y1 <= page.y1 + 1, text
    for (first, a), (second, b) in itertools.combinations(boxes, 2):
        is_apart = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
        assert is_apart, (first, second)


@pytest.mark.parametrize("num_sets", [1, 2, 6, 20])
@pytest.mark.parametrize("num_tasks", [1, 2, 6])
def test_no_text_lies_on_another_or_outside(num_sets: int, num_tasks: int) -> None:
    tasks = ("audio", "cv", "multimodal", "nlp", "other", "scientific")[:num_tasks]
    names = [f"openvino (precision=f{index}, mode=max-autotune)" for index in range(num_sets)]
    counts = [0, 3, 30, 0, 2, 895]
    values = {name: np.linspace(-2, 2, counts[i % 6]) for i, name in enumerate(names)}
    panels = {task if num_tasks > 1 else "": values for task in tasks}
    totals = {task: dict.fromkeys(names, 1272) for task in panels}
    devices = dict.fromkeys(names, "cuda")
    scores = {
        name: error_aware_speedup_score(runs_of(name, 0.2 * (1 + index % 4)))
        for index, name in enumerate(names)
    }
    assert_legible(plot_speedups(panels, totals, devices))
    assert_legible(plot_scores(dict.fromkeys(panels, scores), devices))


def slow_to_fast(count: int, **columns: Any) -> list[dict[str, Any]]:
    """Return runs of `count` samples with eager times of 0.03 ms to 3 s and speedups up to 8."""
    return [
        make_run(
            f"transformers/{'AModelWithALongNameForImageClassification' * (index % 2)}-{index}",
            2.0 ** (4 * index / count - 1),
            baseline_latency_ms=[0.03 * 1e5 ** (index / count)],
            speedup_low=2.0 ** (4 * index / count - 1.1),
            speedup_high=2.0 ** (4 * index / count - 0.9),
            **columns,
        )
        for index in range(count)
    ]


@pytest.mark.parametrize("num_sets", [1, 2, 4, 20])
def test_latency_panels_are_legible(num_sets: int) -> None:
    samples = timed_samples(slow_to_fast(40))
    sets = {f"inductor (freezing=false, mode=m{i}, device cpu)": samples for i in range(num_sets)}
    figure = plot_latencies(sets, dict.fromkeys(sets, "cpu"))
    assert len(figure.axes) == num_sets
    assert_legible(figure)


@pytest.mark.parametrize("count", [0, 1, 30, 500])
def test_bars_of_samples_are_sorted_and_legible_and_failures_are_named(count: int) -> None:
    bad = [make_run(f"wrong-{i}", 2.0, min_t=3.0) for i in range(20)]
    bad += [make_run("crash", status="run_failed")]
    samples = timed_samples(slow_to_fast(count) + (bad if count != 1 else []))
    figure = plot_samples(samples, "x" * 100, "cpu")
    assert_legible(figure)
    (axis,) = figure.axes
    widths = [bar.get_width() for bar in axis.patches]
    assert widths == sorted(widths)
    assert len(widths) == min(count, MAX_BARS)
    labels = [label.get_text() for label in axis.get_yticklabels()]
    assert ("… 6 more wrong or failed …" in labels) == (count != 1)
    assert ("… 460 samples between …" in labels) == (count == 500)
    if count != 1:
        assert f"{count} right, 20 wrong, 1 failed" in figure.get_suptitle()
        assert [text.get_text() for text in axis.texts].count("WRONG") == 15


def test_a_run_set_has_the_same_colour_in_all_pictures() -> None:
    sets = {f"c{index}": as_table(runs_of(f"c{index}", 1.0 + index)) for index in range(12)}
    sets["c0"] = sets["c0"].filter([task == "nlp" for task in sets["c0"]["task"].to_pylist()])
    figures = dict(draw_runs(sets))
    expected = {
        text.get_text(): text.get_color() for text in figures["speedup_score"].axes[0].texts
    }
    assert len(expected) == 12
    for place, name in enumerate(sets):
        (bars,) = [figures[f"samples_{name}"].axes[0].patches[:1]]
        assert _hex(bars[0].get_facecolor()) == expected[name]
        points = figures["latency"].axes[place].collections[0]
        assert not len(points.get_offsets()) or _hex(points.get_facecolor()[0]) == expected[name]
        for stem in ("speedups", "speedups_by_task"):
            axis = figures[stem].axes[-1]
            (row,) = [
                scatter for scatter in axis.collections
                if len(scatter.get_offsets()) > 1 and round(scatter.get_offsets()[0][1]) == place
            ]  # fmt: skip
            assert _hex(row.get_facecolor()[0]) == expected[name]
    for panel in figures["speedup_score_by_task"].axes:
        lines = [line for line in panel.lines if line.get_drawstyle() == "default"][:-1]
        names = list(sets) if panel.get_title(loc="left").startswith("nlp") else list(sets)[1:]
        assert [line.get_color() for line in lines] == [expected[name] for name in names]


def _hex(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour).upper()


def test_each_panel_shows_where_zeros_would_pass() -> None:
    scores = speedup_score(FOUR)
    figure = plot_scores({"cv": {"x": scores}, "nlp": {"x": scores}}, {"x": "cuda"})
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == [f"{task} (N = 4)\nzeros pass 0 % at t = -3" for task in ("cv", "nlp")]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["x"]
    assert figure.get_suptitle().endswith("on cuda")


def test_a_matplotlibrc_in_the_working_directory_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text(
        "text.usetex: True\ntext.latex.preamble: \\\\input{/etc/passwd}\nlines.color: red\n"
    )
    program = (
        "from graphnet_datasets.report.style import import_figure, settings, save\n"
        "import matplotlib\n"
        "assert matplotlib.rcParams['text.usetex']\n"
        "with settings():\n"
        "    figure = import_figure()()\n"
        "    figure.text(0.5, 0.5, 'text')\n"
        "save(figure, '.', 'picture')\n"
    )
    subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, check=True)
    assert (tmp_path / "picture.svg").exists()
