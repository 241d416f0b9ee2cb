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

from graphnet_datasets.report import plot_runs, plot_scores, plot_speedups
from graphnet_datasets.report.plots import log2_speedups

NAMES = ["speedup_score", "error_aware_speedup_score", "speedups"]


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


TWO = {"a": runs_of("a", 1.0), "b": runs_of("b", 0.7)}


@pytest.fixture(scope="module")
def plots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """Pictures of two run sets, drawn once, of which one has a task in which no run counts."""
    directory = tmp_path_factory.mktemp("plots")
    broken = BROKEN_EAGER | {"task": "audio", "compiler": "a"}
    return directory, plot_runs(TWO | {"a": [*TWO["a"], broken]}, directory)


def test_all_pictures_are_written_in_both_formats(plots: tuple[Path, list[Path]]) -> None:
    directory, written = plots
    expected = {
        f"{name}{part}.{suffix}"
        for name in NAMES
        for part in ("", "_by_task")
        for suffix in ("png", "svg")
    }
    assert {path.name for path in written} == expected
    assert {path.name for path in directory.iterdir()} == expected
    for path in written:
        if path.suffix == ".png":
            assert is_png(path)
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")  # noqa: S314


def test_one_task_gives_no_pictures_by_task(tmp_path: Path) -> None:
    written = plot_runs({"a": [make_run("x", 2.0), make_run("y", 3.0)]}, tmp_path)
    assert sorted({path.stem for path in written}) == sorted(NAMES)


def test_the_same_runs_give_the_same_files(plots: tuple[Path, list[Path]], tmp_path: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    for path in plot_runs(TWO, tmp_path):
        assert path.read_bytes() == (plots[0] / path.name).read_bytes(), path.name
    assert dict(matplotlib.rcParams) == before, "the user's settings stay as they are"


def test_the_lines_are_the_scores() -> None:
    scores = error_aware_speedup_score(FOUR)
    (axis,) = plot_scores({"": {"inductor": scores}}).axes
    below, above, _ = axis.lines
    assert list(below.get_xdata()) == list(range(-10, 1))
    np.testing.assert_array_equal(below.get_ydata(), scores["ES"][:11])
    np.testing.assert_array_equal(above.get_ydata(), scores["ES"][10:])
    assert (below.get_drawstyle(), above.get_drawstyle()) == ("default", "steps-post")


def test_s_of_the_report_ends_at_zero() -> None:
    (axis,) = plot_scores({"": {"inductor": speedup_score(FOUR)}}).axes
    assert [len(line.get_xdata()) for line in axis.lines] == [11, 2]


def test_p_b_and_variant_stand_in_the_title() -> None:
    figure = plot_scores(
        {"": {"x": speedup_score(FOUR, p=0, b=0.2, variant="upstream")}}, {"x": "cuda"}
    )
    assert figure.get_suptitle() == "Speedup score S(t): p = 0, b = 0.2, variant upstream"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "x (N = 4; cuda; zeros pass 0 % at t = -3, 25 % at t = 0)"
    ]


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


def test_labels_tell_how_many_of_how_many_and_do_not_overlap() -> None:
    counts = {str(index): np.linspace(-1, 1, 895) for index in range(4)}
    panels = {task: counts for task in ("cv", "nlp", "audio")}
    totals = {task: dict.fromkeys(counts, 1272) for task in panels}
    (axis,) = plot_speedups({"": {"x": counts["0"]}}, {"": {"x": 1272}}, {"x": "cpu"}).axes
    assert [each.get_text() for each in axis.get_xticklabels()] == ["x\nn = 895 of 1,272"]
    figure = plot_speedups(panels, totals)
    figure.draw_without_rendering()
    for axis in figure.axes:
        boxes = [each.get_window_extent() for each in axis.get_xticklabels()]
        assert all(a.x1 <= b.x0 for a, b in itertools.pairwise(boxes))


@pytest.mark.parametrize(("count", "violins"), [(1, 0), (19, 0), (20, 1), (500, 1)])
def test_violins_begin_at_twenty_points(count: int, violins: int) -> None:
    (axis,) = plot_speedups({"": {"x": np.linspace(-1, 1, count)}}).axes
    bodies = [
        each for each in axis.collections if type(each).__name__ == "FillBetweenPolyCollection"
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
    assert [label.get_text() for label in axis.get_xticklabels()] == ["x\nn = 9", "y\nn = 1"]


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
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 1


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


def texts_of(figure: Any) -> list[Any]:
    """Return every text that is drawn in a figure, once it is laid out."""
    figure.draw_without_rendering()
    shown = [each for axis in figure.axes for each in axis.texts]
    for axis in figure.axes:
        shown += [axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label]
        low, high = axis.get_ylim()
        shown += [
            tick.label1 for tick in axis.yaxis.get_major_ticks() if low <= tick.get_loc() <= high
        ]
        shown += axis.get_xticklabels()
    shown += [text for legend in figure.legends for text in legend.get_texts()]
    return [each for each in shown if each.get_text() and each.get_visible()]


@pytest.mark.parametrize("num_sets", [1, 2, 6])
@pytest.mark.parametrize("num_tasks", [1, 2, 6])
def test_no_text_lies_on_another_or_outside(num_sets: int, num_tasks: int) -> None:
    tasks = ("audio", "cv", "multimodal", "nlp", "other", "scientific")[:num_tasks]
    names = [f"openvino (precision=f{index})" for index in range(num_sets)]
    counts = [0, 3, 30, 0, 2, 895]
    values = {name: np.linspace(-2, 2, counts[i]) for i, name in enumerate(names)}
    panels = {task if num_tasks > 1 else "": values for task in tasks}
    totals = {task: dict.fromkeys(names, 1272) for task in panels}
    scores = {name: error_aware_speedup_score(runs_of(name, 1.3)) for name in names}
    devices = dict.fromkeys(names, "cuda")
    for figure in (
        plot_speedups(panels, totals, devices),
        plot_scores(dict.fromkeys(panels, scores), devices),
    ):
        texts = texts_of(figure)
        boxes = [(each.get_text(), each.get_window_extent()) for each in texts]
        page = figure.bbox
        for text, box in boxes:
            assert box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1, text
            assert box.y0 >= page.y0 - 1 and box.y1 <= page.y1 + 1, text
        for (one, a), (other, b) in itertools.combinations(boxes, 2):
            is_apart = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
            assert is_apart, (one, other)


def test_each_panel_tells_where_zeros_would_pass() -> None:
    scores = speedup_score(FOUR)
    figure = plot_scores({"cv": {"x": scores}, "nlp": {"x": scores}}, {"x": "cuda"})
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == [f"{task} (N = 4)\nzeros pass 0 % at t = -3" for task in ("cv", "nlp")]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["x (cuda)"]


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
