"""Pages rendered from templates; the template engine escapes all text from records."""

from __future__ import annotations

import importlib.resources
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ...atomic import write_text
from ...benchmark.commands import command_of
from ...errors import MissingExtraError
from ...scores.summary_text import mean_text, seconds_text, times_text
from ...scores.variants import TOLERANCE
from ...scores.verdicts import FAILED, Verdict
from ...terminal import printable
from ..labels import compact_names
from ..names import slug
from . import charts
from .samples import beside_best

PER_PAGE = 200
"""Maximum number of rows of a long table on one page."""
MAX_LISTED = 20
"""Maximum number of samples in an excerpt of a table."""
SHOWN_T = (-5, -3, 0)

_TEMPLATES = "templates/site"
_ASSETS = (
    "site.css", "site.js", "cytoscape.min.js", "cytoscape.license.txt", "dagre.min.js",
    "dagre.license.txt",
)  # fmt: skip
_Row = TypeVar("_Row")


class Renderer:
    """Renders the templates of the site into files.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """

    def __init__(self, title: str) -> None:
        try:
            import jinja2
        except ImportError as error:
            raise MissingExtraError("jinja2", "report", "Writing a site") from error
        self.environment = jinja2.Environment(
            loader=jinja2.FunctionLoader(_source),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.filters |= _FILTERS
        self.environment.globals |= {
            "site_title": title,
            "tolerance": TOLERANCE,
            "shown_t": SHOWN_T,
            "verdicts": list(Verdict),
            "failed": FAILED,
            "Verdict": Verdict,
            "charts": charts,
            "command_of": command_of,
            "beside_best": beside_best,
            "task_slug": self.task_slug,
            "subtask_slug": self.subtask_slug,
            "tops": _tops,
            "compact_names": compact_names,
            "mean_text": mean_text,
            "seconds_text": seconds_text,
            "times_text": times_text,
            "max_listed": MAX_LISTED,
            "times_of": _times_of,
        }

    def add_globals(self, **values: Any) -> None:
        """Make these values available in all templates."""
        self.environment.globals |= values

    @staticmethod
    def task_slug(task: str) -> str:
        """Return the page name of a task."""
        return slug(task)

    @staticmethod
    def subtask_slug(task: str, subtask: str) -> str:
        """Return the page name of a subtask, which may also exist in other tasks."""
        return slug(f"{task} {subtask}", task, subtask)

    def write_assets(self, place: Path) -> None:
        """Write the style sheet, the script, and the libraries that draw graphs."""
        for name in _ASSETS:
            write_text(place / name, _source(name))

    def write(self, path: Path, template: str, **values: Any) -> None:
        """Write a page."""
        depth = "" if template in _AT_TOP else "../"
        page = self.environment.get_template(template)
        write_text(path, printable(page.render(root=depth, page_name=template, **values)))

    def write_parts(self, path: Path, template: str, rows: Sequence[Any], **values: Any) -> None:
        """Write the page of a long table, and further pages after every `PER_PAGE` rows."""
        parts = parts_of(rows, PER_PAGE)
        names = [path.name] + [f"{path.stem}-{number}.html" for number in range(2, len(parts) + 1)]
        for number, (name, part) in enumerate(zip(names, parts, strict=True), start=1):
            self.write(
                path.with_name(name),
                template,
                rows=part,
                number=number,
                names=names,
                num_rows=len(rows),
                first_row=(number - 1) * PER_PAGE + 1,
                **values,
            )


_AT_TOP = frozenset({"index.html", "records.html", "samples.html"})


def parts_of(rows: Sequence[_Row], size: int) -> list[Sequence[_Row]]:
    """Split rows into parts of at most `size`; an empty list is one part.

    >>> parts_of([1, 2, 3], 2), parts_of([], 2)
    ([[1, 2], [3]], [[]])
    """
    return [rows[start : start + size] for start in range(0, max(len(rows), 1), size)]


def _source(name: str) -> str:
    return (
        importlib.resources.files("graphnet_datasets.report").joinpath(_TEMPLATES, name).read_text()
    )


def _tops(rows: Sequence[dict[str, Any]]) -> dict[str, list[tuple[float, dict[str, Any]]]]:
    """Return the samples that an arm slows down most, and those with the largest potential.

    `slower` is sorted by speedup, `roofline` by the share of the device's peak rates, and `beaten`
    by how many times faster the best other arm is.
    """
    right = [r for r in rows if r["verdict"] in (Verdict.FASTER, Verdict.EVEN, Verdict.SLOWER)]
    slower = [(r["speedup"], r) for r in right if r["verdict"] is Verdict.SLOWER]
    roofline = [(r["roofline_share"], r) for r in right if r["roofline_share"] is not None]
    beaten = [(ratio, r) for r in right if (ratio := beside_best(r)) is not None]
    return {
        "slower": sorted(slower, key=lambda pair: pair[0]),
        "roofline": sorted(roofline, key=lambda pair: pair[0]),
        "beaten": sorted(beaten, key=lambda pair: -pair[0]),
    }


def _times_of(rows: Sequence[dict[str, Any]]) -> list[tuple[str, Sequence[float]]]:
    """Return the time quantiles to draw: eager of the first record, then each arm."""
    timed = [row for row in rows if row["candidate_ms"] is not None]
    labels = compact_names([row["arm"].name for row in timed])
    quantile_rows = [(labels[row["arm"].name], row["candidate_quantiles"]) for row in timed]
    eager = [("eager", row["baseline_quantiles"]) for row in timed[:1] if row["baseline_ms"]]
    return [*eager, *quantile_rows][:40]


def _significant(value: float | None) -> str:
    """Format a number with three significant digits.

    >>> _significant(1234.5), _significant(0.012345), _significant(None)
    ('1,234', '0.0123', '')
    """
    if value is None or math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.0f} %" if value >= 0.1 or value == 0 else f"{100 * value:.2g} %"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _bytes(value: int | None) -> str:
    """Format a size in bytes.

    >>> _bytes(3 * 2**20), _bytes(None)
    ('3 MiB', '')
    """
    if value is None:
        return ""
    size, units = float(value), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.3g} {units[0]}"


def _css(verdict: Verdict) -> str:
    """Return the CSS class of a verdict."""
    return str(verdict).replace(" ", "-")


_FILTERS: dict[str, Callable[..., str]] = {
    "significant": _significant,
    "score": _score,
    "share": _share,
    "count": _count,
    "bytes": _bytes,
    "css": _css,
}
