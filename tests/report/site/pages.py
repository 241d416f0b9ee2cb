"""Reading the pages of a site as a browser without scripts would."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "img", "link", "br", "input"}


class Page(HTMLParser):
    """The elements, references, ids and visible text of a page; every element has to be closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(path.read_text())
        assert self.open == [], f"{path}: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.elements.append((tag, values))
        self.references += [values[name] for name in ("src", "href") if name in values]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of the elements with this name."""
        return [attributes for name, attributes in self.elements if name == tag]


def read_pages(site: Path) -> dict[str, Page]:
    """Return the pages of a site by their paths."""
    return {str(path.relative_to(site)): Page(path) for path in sorted(site.rglob("*.html"))}
