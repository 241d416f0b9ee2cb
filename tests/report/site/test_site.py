"""The site: whole, alone, readable without scripts, and safe whatever the records hold."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("jinja2", reason="jinja2 is not installed")

from graphnet_datasets.benchmark.records.records import write_runs
from graphnet_datasets.cli.app import app
from graphnet_datasets.errors import DiskError, ScoreError
from graphnet_datasets.report import write_site
from graphnet_datasets.report.site.pages import PER_PAGE
from graphnet_datasets.scores import Outcome, speedup_score, summarise

from .pages import Page, read_pages
from .records import failed, timed, two_arms

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>`;\u202e../../x\x00'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(two_arms(), tmp_path_factory.mktemp("site") / "out", dataset=None)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return read_pages(site)


def named(pages: dict[str, Page], start: str) -> Page:
    (found,) = [page for name, page in pages.items() if name.startswith(start)]
    return found


def chunk(path: Path) -> dict[str, Any]:
    packed = re.fullmatch(r'graphnetChunk\("[a-z0-9-]+","([A-Za-z0-9+/=]+)"\);\n', path.read_text())
    assert packed is not None
    return json.loads(gzip.decompress(base64.b64decode(packed[1])))


def test_there_is_a_page_for_each_compiler_task_sample_and_environment(
    pages: dict[str, Page],
) -> None:
    counts = {
        folder: sum(name.startswith(f"{folder}/") for name in pages)
        for folder in ("arms", "tasks", "subtasks", "samples", "environments")
    }
    assert counts == {"arms": 2, "tasks": 3, "subtasks": 4, "samples": 9, "environments": 1}


def test_subtasks_have_scores_of_their_own_and_pages_of_their_own_in_each_task(
    pages: dict[str, Page],
) -> None:
    records = [record for record in two_arms()["inductor"] if record["sample_id"] == "even"]
    score = f"{speedup_score(records).at(-3)['S']:.3f}"
    detection = named(pages, "subtasks/cv-detection")
    assert score in detection.text and "Samples 1 to 1 of 1" in detection.text
    assert "Subtask detection" in detection.text
    links = [link for link in detection.references if "samples/" in link]
    assert len(links) == 1 and links[0].startswith("../samples/even-")
    task = named(pages, "tasks/cv")
    assert "S(-3) by subtask of cv" in task.text
    assert score in task.text.partition("by subtask of cv")[2]
    assert {"cv", "nlp", "other"} >= {
        name.removeprefix("subtasks/").partition("-")[0]
        for name in pages
        if "classification" in name
    }
    assert "../subtasks/" in "".join(named(pages, "samples/even").references)
    # A sample without a subtask has no such link.
    assert "subtasks/" not in "".join(named(pages, "samples/slow").references)


def test_every_link_leads_somewhere_in_the_site(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        for reference in page.references:
            target, _, anchor = reference.partition("#")
            assert "://" not in reference, reference
            path = (site / name).parent / target if target else site / name
            assert path.is_file(), f"{name}: {reference}"
            if anchor and "=" not in anchor:
                anchors = {attributes.get("id") for _, attributes in Page(path).elements}
                assert anchor in anchors, reference


def test_the_overview_has_the_scores_of_the_library(pages: dict[str, Page]) -> None:
    text = pages["index.html"].text
    for records in two_arms().values():
        assert f"{speedup_score(records).at(-3)['S']:.3f}" in text
    # The largest score comes first.
    assert text.index("torchscript") < text.index("inductor")


def test_the_overview_warns_of_compilers_run_on_different_samples(
    site: Path, tmp_path: Path
) -> None:
    warning = "Not all compilers were run on the same samples"
    assert warning in (site / "index.html").read_text()
    sets = {"inductor": [timed("a", 2.0)], "torchscript": [timed("a", 3.0)]}
    other = write_site(sets, tmp_path / "site", dataset=None)
    assert warning not in (other / "index.html").read_text()


def test_each_machine_and_size_class_has_a_table_of_its_own(tmp_path: Path) -> None:
    gpu = {"device": "cuda", "environment": json.dumps({"gpu": {"name": f"GPU <b>{'x' * 90}"}})}
    slow = {"baseline_latency_ms": [40.0, 41.0], "candidate_latency_ms": [20.0, 20.5]}
    cpu = [timed("a", 2.0), timed("b", 2.0, **slow), failed("c", "compile_failed")]
    sets = {
        "inductor (device cpu)": cpu,
        "inductor (device cuda)": [timed("a", 9.0, **gpu), timed("b", 9.0, **gpu)],
        "inductor (device xpu)": [timed("a", 7.0, device="xpu", environment=None)],
    }
    pages = read_pages(write_site(sets, tmp_path / "site", dataset=None))
    page = pages["index.html"]
    name = f"GPU <b>{'x' * 73}"
    for machine in ("test machine, 2 CPUs", name, "unknown machine"):
        assert f"Compilers on {machine}" in page.text
        assert f"{machine}: no headline, since no compiler ran on 100 families" in page.text
    tabs = [field["name"] for field in page.named("input")]
    assert tabs.count("machines") == 3
    assert tabs.count("sizes-1") == 4
    for title in ("eager 1 to 10 ms", "eager above 10 ms", "eager not timed"):
        assert title in page.text
    assert "Each machine has tables of its own" in page.text
    ids = [table["id"] for table in named(pages, "tasks/cv").named("table")]
    assert {"compilers", "compilers-2", "compilers-3"} <= set(ids)
    alone = write_site(two_arms(), tmp_path / "alone", dataset=None)
    assert "Each machine" not in (alone / "index.html").read_text()


def test_the_first_columns_are_the_verdicts_and_their_numbers_those_of_score(
    site: Path,
) -> None:
    text = (site / "index.html").read_text()
    head = re.findall(r'<th scope="col" class="(?:number|text)[^>]*>([^<]*)<', text)
    assert head[:6] == ["Compiler", "right", "wrong", "failed", "undecidable", "S(-3)"]
    row = text.partition(">inductor</a>")[2].partition("</tr>")[0]
    summary = summarise(two_arms()["inductor"])
    labels = ("right", "wrong", "failed", "undecidable", "not counted")
    shown = dict(re.findall(r'data-label="([^"]*)" data-value="[^"]*">([^<]*)<', row))
    assert {label: int(shown[label]) for label in labels} == {
        label: summary.counts.get(Outcome(label), 0) for label in labels
    }
    assert shown["S(-3)"] == f"{summary.s:.3f}"


def test_a_headline_needs_a_hundred_families(tmp_path: Path) -> None:
    sets = {
        "few": [timed(f"s{index}", 9.0, compiler="few") for index in range(99)],
        "many": [timed(f"s{index}", 2.0, compiler="many") for index in range(100)],
    }
    text = (write_site(sets, tmp_path / "site", dataset=None) / "index.html").read_text()
    line = text.partition('class="headline">')[2].partition("<")[0]
    assert line.startswith("test machine, 2 CPUs: S(-3) where each family counts once")
    assert "many 2.00 (" in line and "with 100 families" in line
    assert "few" not in line


def test_the_page_of_a_compiler_lists_slowdowns_headroom_and_errors(
    pages: dict[str, Page],
) -> None:
    text = named(pages, "arms/inductor").text
    tables = text.split("Right, but slower than eager")[1]
    slower, beaten, roofline = (
        tables.split("another compiler is faster")[0],
        tables.split("another compiler is faster")[1].split("furthest from")[0],
        tables.split("furthest from")[1].split("Failures by")[0],
    )
    assert "slow" in slower
    assert "fast" not in slower
    assert "6\u00d7" in beaten  # 3.0 against 0.5
    assert "5 %" in roofline
    assert "no kernel # for `…`" in text  # two failures with the same message


def test_the_page_of_a_sample_shows_times_errors_environment_and_command(
    pages: dict[str, Page],
) -> None:
    page = named(pages, "samples/refused-")
    assert "no kernel 12 for `a`\nmore" in page.text
    assert "graphnet run refused --compiler inductor" in page.text
    assert any("environments/" in reference for reference in page.references)
    page = named(pages, "samples/fast")
    assert "Times of eager and of the compilers" in page.named("svg")[0]["aria-label"]
    assert "0.490" not in page.text
    assert "1.96\u20132.04" in page.text


def test_tables_and_pictures_are_named_for_those_who_do_not_see_them(
    pages: dict[str, Page],
) -> None:
    for name, page in pages.items():
        assert page.named("html")[0]["lang"] == "en"
        assert len(page.named("h1")) == 1, name
        assert len(page.named("table")) == len(page.named("caption")), name
        assert all(image.get("alt") for image in page.named("img")), name
        assert all("scope" in cell for cell in page.named("th")) or "arms/" in name
        for svg in page.named("svg"):
            assert svg.get("aria-label") or svg.get("aria-hidden") == "true"
        for element, attributes in page.elements:
            # A region that scrolls has to be reached by keyboard.
            assert "scroll" not in attributes.get("class", "") or attributes["tabindex"] == "0"
            assert "style" not in attributes, f"{name}: <{element}>"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_contrast_with_their_background(site: Path, scheme: str) -> None:
    """WCAG 2.2, success criterion 1.4.3: a contrast of 4.5 for text."""
    blocks = re.findall(r":root \{([^}]*)\}", (site / "site.css").read_text())
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", blocks[0]))
    if scheme == "dark":
        colours |= dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", blocks[1]))

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for name in ("text", "dim", "link", "good", "bad", "warn", "even"):
        for ground in ("back", "panel"):
            bright, dark = sorted((luminance(colours[name]), luminance(colours[ground])))[::-1]
            assert (bright + 0.05) / (dark + 0.05) >= 4.5, (name, ground)


def test_long_tables_go_on_over_pages_and_nothing_is_lost(tmp_path: Path) -> None:
    count = PER_PAGE + 5
    records = [timed(f"sample {index:04}", 1.5, floor_ms=0.1) for index in range(count)]
    site = write_site({"x": records}, tmp_path / "site", dataset=None)
    pages = read_pages(site)
    for start in ("arms/inductor", "tasks/cv", r"samples(-\d+)?\.html"):
        parts = [page for name, page in pages.items() if re.match(start, name)]
        assert len(parts) == 2
        linked = {ref for page in parts for ref in page.references if "samples/sample-" in ref}
        assert len(linked) == count
    (data,) = (site / "data").glob("arm-*.js")
    assert len(chunk(data)["sample"]) == count


def test_the_data_for_scripts_are_the_records(site: Path) -> None:
    samples = chunk(site / "data" / "samples.js")
    (path,) = (site / "data").glob("arm-inductor-*.js")
    data = chunk(path)
    slow = data["sample"].index(samples["id"].index("slow"))
    assert data["speedup"][slow] == 0.5
    assert data["candidate_ms"][slow] == 8.0
    refused = data["sample"].index(samples["id"].index("refused"))
    assert (data["speedup"][refused], data["error"][refused]) == (None, "LoweringError")


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    hostile = {
        name: EVIL
        for name in (
            "task", "framework", "source", "dataset", "compiler", "compiler_version", "device",
            "error_type", "error_message", "reason", "phase", "environment_id", "started_at",
            "compiler_options", "environment", "run_id", "family", "baseline",
        )
    }  # fmt: skip
    records = [
        failed(EVIL, "run_failed", **hostile, warnings=[EVIL]),
        timed(f"{EVIL}/../../../../etc", 2.0, **hostile, warnings=[EVIL]),
    ]
    out = tmp_path / "deep" / "site"
    write_site({EVIL: records}, out, title=EVIL, dataset=None)
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]
    assert [path.name for path in out.parent.iterdir()] == ["site"]
    for path in out.rglob("*"):
        assert re.fullmatch(r"[a-z0-9.-]+", path.name), path.name
    for name, page in read_pages(out).items():
        scripts = page.named("script")
        assert [script.get("type", script.get("src", ""))[-16:] for script in scripts] in (
            ["site.js"], ["../site.js"], ["site.js", "application/json"],
        ), name  # fmt: skip
        assert not page.named("img")
        for _, attributes in page.elements:
            assert not any(attribute.startswith("on") for attribute in attributes), name
        assert all(re.fullmatch(r"[\w./#=%&-]+", reference) for reference in page.references)


def test_equal_records_give_equal_bytes_and_a_site_is_replaced(tmp_path: Path) -> None:
    def content(path: Path) -> dict[str, bytes]:
        files = (file for file in path.rglob("*") if file.is_file())
        return {str(file.relative_to(path)): file.read_bytes() for file in files}

    first = content(write_site(two_arms(), tmp_path / "a", dataset=None))
    write_site({"inductor": [timed("gone", 2.0)]}, tmp_path / "b", dataset=None)
    assert content(write_site(two_arms(), tmp_path / "b", dataset=None)) == first


def test_nothing_else_is_replaced_and_an_older_site_survives_an_error(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(DiskError, match="File exists"):
        write_site(two_arms(), tmp_path / "mine", dataset=None)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    site = write_site(two_arms(), tmp_path / "site", dataset=None)
    with pytest.raises(ScoreError, match="There are no run records for a site"):
        write_site({"none": []}, site, dataset=None)
    assert (site / "index.html").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "site"]


def test_records_of_one_arm_from_two_places_have_pages_of_their_own(tmp_path: Path) -> None:
    sets = {name: [timed("one", speedup)] for name, speedup in (("a: x", 2.0), ("b: x", 3.0))}
    pages = read_pages(write_site(sets, tmp_path / "site", dataset=None))
    assert sum(name.startswith("arms/") for name in pages) == 2
    (sample,) = [page for name, page in pages.items() if name.startswith("samples/")]
    assert len({reference for reference in sample.references if "arms/" in reference}) == 2


def test_an_arm_of_which_nothing_counts_is_listed_without_a_score(tmp_path: Path) -> None:
    records = [failed("broken", "baseline_failed"), timed("quick", 9.0)]
    records[1]["warnings"] = ["impossibly_fast: faster than the device"]
    site = write_site({"x": records}, tmp_path / "site", dataset=None)
    assert "nothing to score" in Page(site / "index.html").text


def test_graphs_of_the_dataset_are_drawn(tmp_path: Path) -> None:
    records = [timed("torch/dcgan-64", 2.0), timed("torch/unknown", 2.0)]
    site = write_site({"x": records}, tmp_path / "site")
    (picture,) = (site / "pictures").iterdir()
    assert picture.read_text().startswith("<svg")
    pages = read_pages(site)
    (image,) = named(pages, "samples/torch-dcgan").named("img")
    assert image["src"] == f"../pictures/{picture.name}"
    assert not named(pages, "samples/torch-unknown").named("img")


def test_the_command_makes_a_site_of_a_directory(tmp_path: Path) -> None:
    rows = [row for rows in two_arms().values() for row in rows]
    write_runs(
        [{**row, "run_id": str(index)} for index, row in enumerate(rows)],
        tmp_path / "runs.parquet",
    )
    arguments = ["report", tmp_path / "runs.parquet", "--out", tmp_path / "site", "--no-pictures"]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.stdout == f"{tmp_path / 'site' / 'index.html'}\n"
    assert "torchscript" in (tmp_path / "site" / "index.html").read_text()
