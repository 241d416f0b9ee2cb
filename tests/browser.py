"""A headless Chromium, and the defects of a page's layout that can be measured in it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)

_LAYOUT = (Path(__file__).parent / "layout.js").read_text()


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """Start the system's Chromium, or skip the test where Chromium or Playwright is missing."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian's package `chromium`)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def layout_defects(page: Page) -> list[str]:
    """Return a sentence for each clipped, overlapping or illegible text of the page."""
    return page.evaluate(_LAYOUT)
