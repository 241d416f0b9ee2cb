"""Pages and pictures in Chromium: no text is clipped, covered, or too faint to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("jinja2", reason="jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from graphnet_datasets import load_dataset, load_sample, speedup_score
from graphnet_datasets.benchmark import Settings
from graphnet_datasets.cli.app import app
from graphnet_datasets.diagnosis.choosing import choose_subset
from graphnet_datasets.diagnosis.diagnosing import diagnose
from graphnet_datasets.diagnosis.page import write_diagnosis
from graphnet_datasets.report import draw_graph, plot_coverage, plot_distributions
from graphnet_datasets.report.style import save
from graphnet_datasets.storage.table import write_table

from ..browser import layout_defects

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WIDTHS = (390, 800, 1280, 1600)
SCHEMES = ("light", "dark")
SMALL = "torch/mlp-mnist"
LARGE = "paddleclas/GhostNet_x0_5"
DEFECTS = {
    "clipped by": "<p style='width:40px;overflow:hidden;white-space:nowrap'>A long sentence</p>",
    "outside of the window": "<p style='position:absolute;left:-30px'>Left</p>",
    "overlaps": "<p style='position:absolute;top:5px'>One</p><p style='position:absolute'>Two</p>",
    "contrast": "<p style='color:#ccc'>Faint</p>",
    "too narrow": "<button style='width:30px'>Unbreakable</button>",
    "pixels wide": "<div style='width:5000px'>Wide</div>",
    "outside of its picture": "<svg viewBox='0 0 9 9' width='9'><text y='5'>Text</text></svg>",
}
OPEN_DETAILS = "document.querySelectorAll('details').forEach((item) => { item.open = true; })"
WIDE_TABLES = """() => [...document.querySelectorAll(".scroll")]
    .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
    .map((box) => `${box.getAttribute("aria-label")} hides ${box.scrollWidth - box.clientWidth} px`)
"""


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_of_the_layout_is_found(defect: str, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 800, "height": 600})
    page.set_content(DEFECTS[defect])
    assert any(defect in sentence for sentence in layout_defects(page))
    page.set_content(
        "<p>One sentence.</p><svg width='90' height='20'><text y='15'>Text</text></svg>"
    )
    assert layout_defects(page) == []
    page.close()


def defects_of(
    browser: Browser, path: Path, shots: Path, *, has_wide_tables: bool = True
) -> list[str]:
    """Return the defects of a page at every width and in both schemes, and take screenshots.

    Args:
        has_wide_tables: whether tables may be wider than a window of 1,280 pixels.
    """
    defects = []
    for scheme in SCHEMES:
        page = browser.new_page(color_scheme=scheme)
        page.on("pageerror", lambda error: defects.append(str(error)))
        page.goto(path.as_uri())
        if page.locator("#graph-view").count():
            page.wait_for_selector("#graph-view[data-state=ready]")
        if path.name == "records.html":
            page.wait_for_selector("#explorer tbody tr")
        page.evaluate(OPEN_DETAILS)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=shots / f"{path.stem}-{width}-{scheme}.png", full_page=True)
            tabs = page.locator(".tabs > label:visible")
            for place in range(max(1, tabs.count())):
                if tabs.count():
                    tabs.nth(place).click()
                defects.extend(layout_defects(page))
                if width >= 1280 and not has_wide_tables:
                    defects.extend(page.evaluate(WIDE_TABLES))
        page.close()
    return list(dict.fromkeys(defects))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site of the embedded records, as `make leaderboard` builds it."""
    out = tmp_path_factory.mktemp("leaderboard") / "site"
    result = CliRunner().invoke(app, ["report", "graphnet", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out


SITE_PAGES = {
    "index.html": False, "records.html": False, "samples.html": False,
    "arms/inductor-*.html": False, "arms/tc-*.html": False, "environments/*.html": True,
    "tasks/cv-*.html": False, "subtasks/cv-classification-*.html": False,
    "samples/torch-mlp-mnist-*.html": True, "samples/paddleclas-ghostnet-x0-5-*.html": True,
    "samples/torch-geometric-sgformer-*.html": True,
}  # fmt: skip
"""Pages by the pattern of their path; whether tables may be wider than a window."""


@pytest.mark.slow
@pytest.mark.parametrize("pattern", SITE_PAGES)
def test_a_page_of_the_leaderboard(
    pattern: str, site: Path, browser: Browser, tmp_path: Path
) -> None:
    page = min(site.glob(pattern), key=lambda path: len(path.name))
    assert defects_of(browser, page, tmp_path, has_wide_tables=SITE_PAGES[pattern]) == []


def show(fragment: str, path: Path) -> Path:
    """Write a page that shows SVG or HTML as a notebook does."""
    style = ":root { color-scheme: light dark } svg { max-width: 100%; height: auto }"
    path.write_text(f"<!DOCTYPE html><meta charset='utf-8'><style>{style}</style>{fragment}")
    return path


@pytest.mark.slow
def test_the_plots_of_the_embedded_records(browser: Browser, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["plot", "graphnet", "--out", str(tmp_path / "plots")])
    assert result.exit_code == 0, result.output
    figures = {
        "coverage": plot_coverage({"typical": [30, 60, 5], "fusible": [50, 40, 9]}, 100),
        "distributions": plot_distributions(
            {"operators": {"cv": {"mine": [10, 20, 30, 40, 50], "graphnet": [5, 50, 500]}}}
        ),
    }
    for name, figure in figures.items():
        save(figure, tmp_path / "plots", name)
    defects = {}
    # The samples of all arms are drawn alike, so three pictures suffice.
    arms = sorted((tmp_path / "plots").glob("samples_*.svg"))
    for picture in sorted({*(tmp_path / "plots").glob("*.svg")} - {*arms[3:]}):
        page = show(picture.read_text(), tmp_path / f"{picture.stem}.html")
        defects[picture.name] = defects_of(browser, page, tmp_path)
    assert {name: sentences for name, sentences in defects.items() if sentences} == {}
    assert {"latency.svg", "speedups.svg", "speedup_score_by_task.svg"} <= set(defects)


@pytest.mark.slow
def test_the_single_page_of_the_embedded_records(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["report", "graphnet", "--out", str(path)])
    assert result.exit_code == 0, result.output
    assert defects_of(browser, path, tmp_path) == []


@pytest.mark.slow
def test_the_page_of_a_diagnosis(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    samples = [load_sample(name) for name in ("torch_geometric/MLP-train", SMALL)]
    table = str(write_table(samples, tmp_path / "samples.parquet"))
    subset = choose_subset("torchscript", 2, dataset=table)
    settings = Settings(has_oracle=False, has_profile=False, num_threads=1)
    diagnosis = diagnose("torchscript", subset, tmp_path / "out", dataset=table, settings=settings)
    assert diagnosis.findings
    assert defects_of(browser, write_diagnosis(diagnosis), tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [SMALL, LARGE])
def test_the_drawing_of_a_graph(name: str, browser: Browser, tmp_path: Path) -> None:
    page = show(draw_graph(load_sample(name)), tmp_path / "graph.html")
    assert defects_of(browser, page, tmp_path) == []


@pytest.mark.slow
def test_the_drawing_of_a_schedule(browser: Browser, tmp_path: Path) -> None:
    pytest.importorskip("islpy", reason="islpy is not installed")
    from graphnet_datasets import tensor_comprehensions as tc

    layer = tc.define(
        "def gated(float(B, M) X, float(N, M) V, float(N, M) W) -> (O) {"
        " left(b, n) +=! X(b, m) * V(n, m) right(b, n) +=! X(b, m) * W(n, m)"
        " O(b, n) = left(b, n) / (1.0 + exp(-right(b, n))) }"
    )
    arrays = [np.ones(shape, np.float32) for shape in ((8, 4), (16, 4), (16, 4))]
    page = show(layer.compile("gated", *arrays).schedule._repr_html_(), tmp_path / "schedule.html")
    assert defects_of(browser, page, tmp_path) == []


@pytest.mark.slow
def test_a_score_in_a_notebook(browser: Browser, tmp_path: Path) -> None:
    runs = load_dataset("graphnet", "runs", split="train", filters=[("compiler", "=", "jax")])
    # Notebooks scroll wide outputs.
    table = f"<div style='overflow-x: auto'>{speedup_score(runs)._repr_html_()}</div>"
    page = show(table, tmp_path / "score.html")
    assert defects_of(browser, page, tmp_path) == []
