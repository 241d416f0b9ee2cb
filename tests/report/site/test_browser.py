"""The site in a real browser, opened from the disk: scripts run, and hostile names do not."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="jinja2 is not installed")

from graphnet_datasets.report import write_site

from .records import failed, timed, two_arms

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="there is no chromium here (Debian's package `chromium`)"
)

EVIL = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


def rendered(address: str, profile: Path) -> str:
    """Return the document of a page once its scripts have run."""
    assert BROWSER is not None
    command = [
        BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={profile}", "--virtual-time-budget=5000", "--dump-dom", address,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


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


def test_a_link_restores_filters_and_sorting(site: Path, tmp_path: Path) -> None:
    document = rendered(f"file://{site}/records.html#verdict=slower&sort=speedup", tmp_path)
    assert "2 of 14 records" in document
    assert first_cells(document) == [EVIL, "slow"]
    assert "aria-sort" in document


def test_records_are_filtered_by_subtask(site: Path, tmp_path: Path) -> None:
    document = rendered(f"file://{site}/records.html#task=cv&subtask=classification", tmp_path)
    assert "2 of 14 records" in document
    assert set(first_cells(document)) == {"fast"}
    assert document.count('value="classification"') == 1


def test_hostile_names_are_shown_and_never_run(site: Path, tmp_path: Path) -> None:
    document = rendered(f"file://{site}/records.html#find=onerror", tmp_path)
    assert "2 of 14 records" in document
    assert "<title>All records" in document
    assert "<img" not in document


def test_tables_are_sorted_by_a_link(site: Path, tmp_path: Path) -> None:
    document = rendered(f"file://{site}/index.html#compilers.sort=0", tmp_path)
    assert first_cells(document) == ["inductor", "torchscript"]
    assert 'aria-sort="ascending"' in document
