"""The site in a real browser, opened from the disk: scripts run, and hostile names do not."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("jinja2", reason="jinja2 is not installed")

from graphnet_datasets.report import write_site

from .records import failed, timed, two_arms

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EVIL = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


def rendered(address: str, browser: Browser) -> str:
    """Return the document of a page once its scripts have run."""
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector("tbody tr")
    document = page.content()
    page.close()
    return document


def first_cells(document: str) -> list[str]:
    """Return the heads of the rows that are shown, in their order."""
    body = document.split("<tbody>")[1].split("</tbody>")[0]
    rows = re.findall(r'<tr( hidden="")?>.*?<th[^>]*>(?:<a[^>]*>)?(.*?)<', body, re.DOTALL)
    return [html.unescape(name) for hidden, name in rows if not hidden]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sets = two_arms()
    sets["inductor"] += [timed(EVIL, 0.25), failed(f"{EVIL}2", "run_failed", error_type=EVIL)]
    return write_site(sets, tmp_path_factory.mktemp("browser") / "site", dataset=None, title="Fine")


def test_a_link_restores_filters_and_sorting(site: Path, browser: Browser) -> None:
    document = rendered(f"file://{site}/records.html#verdict=slower&sort=speedup", browser)
    assert "2 of 14 records" in document
    assert first_cells(document) == [EVIL, "slow"]
    assert "aria-sort" in document


def test_records_are_filtered_by_subtask(site: Path, browser: Browser) -> None:
    document = rendered(f"file://{site}/records.html#task=cv&subtask=classification", browser)
    assert "2 of 14 records" in document
    assert set(first_cells(document)) == {"fast"}
    assert document.count('value="classification"') == 1


def test_hostile_names_are_shown_and_never_run(site: Path, browser: Browser) -> None:
    document = rendered(f"file://{site}/records.html#find=onerror", browser)
    assert "2 of 14 records" in document
    assert "<title>All records" in document
    assert "<img" not in document


def test_tables_are_sorted_by_a_link(site: Path, browser: Browser) -> None:
    document = rendered(f"file://{site}/index.html#compilers.sort=0", browser)
    assert first_cells(document) == ["inductor", "torchscript"]
    assert 'aria-sort="ascending"' in document
