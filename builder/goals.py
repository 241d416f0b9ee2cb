"""The dataset's goals, compared with the contents of a table."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from graphnet_datasets.atomic import write_text
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.report.distributions import plot_distributions
from graphnet_datasets.sample.vocabulary import TASKS

from .capturing import BUILDER
from .measures import MEASURES, Counted
from .pages import write_between, write_picture

GOALS = BUILDER / "goals.toml"
"""The goals, and whether the embedded dataset is expected to meet them."""

SIZES = {"num_ops": "operators", "num_params": "parameters", "flops": "floating-point operations"}
"""Columns with sizes of graphs to draw, with the labels of their axes."""

BESIDE = "GraphNet's samples"
"""Heading of the dataset to compare with."""

BEGIN, END = "<!-- goals: begin -->", "<!-- goals: end -->"


@dataclasses.dataclass(frozen=True)
class Goal:
    """A bound of a measure; `holds` is True if the embedded dataset is expected to meet it."""

    name: str
    measure: str
    task: str | None
    at_least: float | None
    at_most: float | None
    holds: bool

    @property
    def is_share(self) -> bool:
        """True if the measure is a share, which is printed in per cent."""
        return self.measure.startswith("share_")

    @property
    def wanted(self) -> str:
        """The bound in readable form."""
        sign, bound = ("≥", self.at_least) if self.at_least is not None else ("≤", self.at_most)
        return f"{sign} {self.text(bound)}"

    def found(self, counted: Counted) -> float | None:
        """Return the value of the measure, or None if the table lacks it."""
        return MEASURES[self.measure](counted, self.task)

    def is_met(self, value: float | None) -> bool:
        """Return whether a value meets the bound; False if the value is unknown."""
        if value is None:
            return False
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)

    def text(self, value: float | None) -> str:
        """Return a value in readable form.

        >>> share = Goal("", "share_train", None, 0.08, None, False)
        >>> share.text(0.0812), share.text(None), share.wanted
        ('8.1%', 'unknown', '≥ 8.0%')
        """
        if value is None:
            return "unknown"
        return f"{value:.1%}" if self.is_share else f"{value:,.0f}"


@dataclasses.dataclass(frozen=True)
class Finding:
    """A goal and its measured value."""

    goal: Goal
    value: float | None
    is_met: bool


def read_goals(path: Path = GOALS) -> list[Goal]:
    """Return the goals of a file.

    Raises:
        GraphNetError: the file is not a TOML file of goals, or a goal does not have exactly one
            bound and a known measure.
    """
    try:
        entries = tomllib.loads(path.read_text())["goal"]
        return [_goal(entry, path) for entry in entries]
    except (KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise GraphNetError(f"`{path}` is not a list of goals: {error}. Correct it.") from error


def _goal(entry: dict[str, Any], path: Path) -> Goal:
    goal = Goal(
        entry["name"], entry["measure"], entry.get("task"), entry.get("at_least"),
        entry.get("at_most"), entry["holds"],
    )  # fmt: skip
    if goal.measure not in MEASURES:
        raise GraphNetError(
            f"`{path}` has the unknown measure `{goal.measure}`. Choose one of "
            f"{', '.join(MEASURES)}."
        )
    if (goal.at_least is None) == (goal.at_most is None):
        raise GraphNetError(f"The goal `{goal.name}` in `{path}` needs `at_least` or `at_most`.")
    return goal


def compare(goals: Iterable[Goal], counted: Counted) -> list[Finding]:
    """Return the finding of each goal."""
    values = [(goal, goal.found(counted)) for goal in goals]
    return [Finding(goal, value, goal.is_met(value)) for goal, value in values]


def table(findings: Sequence[Finding], beside: Counted | None = None) -> Iterator[str]:
    """Yield the lines of a table in Markdown, with a column of another dataset's figures."""
    head = ["of graphs that are neither small nor truncated", "goal", "value", "met"]
    rows = [
        [
            finding.goal.name,
            finding.goal.wanted,
            finding.goal.text(finding.value),
            "yes" if finding.is_met else "no",
        ]
        for finding in findings
    ]
    if beside is not None:
        head.append(BESIDE)
        for row, finding in zip(rows, findings, strict=True):
            row.append(finding.goal.text(finding.goal.found(beside)))
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def draw_sizes(datasets: Mapping[str, Counted], path: Path) -> Path:
    """Draw the sizes of the counted graphs of datasets, by task, as an SVG."""
    tables = {name: counted.rows for name, counted in datasets.items()}
    values = {
        quantity: {
            task: {
                name: rows.filter(pc.field("task") == task)[column].drop_null().to_pylist()
                for name, rows in tables.items()
            }
            for task in TASKS
        }
        for column, quantity in SIZES.items()
    }
    return write_picture(plot_distributions(values), path)


def write_goals(path: Path, lines: Iterable[str]) -> None:
    """Write a table between the markers of a page.

    Raises:
        GraphNetError: the text has no markers.
    """
    write_between(path, BEGIN, END, lines)


def write_holds(findings: Sequence[Finding], path: Path = GOALS) -> None:
    """Update the keys `holds` in a file of goals; the rest of the file does not change.

    `findings` has one finding for each goal, in the order of the file.

    Raises:
        GraphNetError: the file has other goals.
    """
    remaining = iter(findings)
    text = path.read_text()
    if len(_HOLDS.findall(text)) != len(findings):
        raise GraphNetError(
            f"`{path}` does not have the {len(findings)} goals that were compared. "
            "Compare it again."
        )
    write_text(path, _HOLDS.sub(lambda _: f"holds = {str(next(remaining).is_met).lower()}", text))


_HOLDS = re.compile(r"^holds = (?:true|false)$", re.MULTILINE)
