"""`Scores`: a small read-only table of scores with one row per t."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ..schema import Status
from ..terminal import counted, printable_line
from .conditions import say_values
from .text import html_table, text_table
from .undecidable import UNDECIDABLE
from .warnings import IMPOSSIBLE, sentence


@dataclasses.dataclass(frozen=True, repr=False)
class Scores:
    """S(t) or ES(t) of one compiler at each t, with its components.

    `columns` maps a name to one entry per t: `t`, `S` or `ES` with `_low` and `_high` (95 %
    interval), the same for `S_family` or `ES_family` (each family counts once), `alpha`, `beta`,
    `lambda`, `eta`, for ES `gamma` and `pi_1` …, `num_correct`, the number of failures of each kind
    (`num_accuracy`, `num_runtime`, `num_compile` …), `num_samples`, the N of this t (below that of
    the others only in the variant "decidable"), `vacuous_share`, the share of samples whose
    comparison at t an all-zero output would pass, and `undecidable_share`, the same plus the
    samples whose eager run itself fails at t against float64. None means undefined or unknown.
    `warnings` counts the samples in N with warnings of each kind; `conditions` contains the
    conditions that differ among the records, with the number of records for each value.

    Iterating yields the rows as dicts, `scores["S"]` is a column, `scores.at(t)` the row of t.
    `excluded` lists the runs that are not in N because they say nothing about the compiler.
    """

    metric: str
    p: float
    b: float
    variant: str
    compiler: str
    num_samples: int
    num_families: int
    num_without_family: int
    num_nondeterministic: int
    warnings: dict[str, int]
    conditions: dict[str, dict[str, int]]
    excluded: tuple[dict[str, Any], ...]
    columns: dict[str, list[Any]] = dataclasses.field(repr=False)

    def __len__(self) -> int:
        return len(self.columns["t"])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self.columns:
            raise KeyError(
                f"There is no column `{column}`. The columns are {', '.join(self.columns)}. For a "
                "row, use `scores.at(t)`."
            )
        return list(self.columns[column])

    def at(self, t: int) -> dict[str, Any]:
        """Return the row of tolerance `t`.

        Raises:
            KeyError: scores are not computed at this t.
        """
        if t not in self.columns["t"]:
            raise KeyError(f"There is no score at t = {t}. Use an integer from -10 to 4.")
        index = self.columns["t"].index(t)
        return {name: values[index] for name, values in self.columns.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON: each column maps t, as a string, to its number or None."""
        keys = [str(t) for t in self.columns["t"]]
        return {
            "p": self.p,
            "b": self.b,
            "variant": self.variant,
            "compiler": self.compiler,
            "samples": self.num_samples,
            "families": self.num_families,
            "samples_without_family": self.num_without_family,
            "nondeterministic": self.num_nondeterministic,
            "warnings": dict(self.warnings),
            "conditions": {name: dict(values) for name, values in self.conditions.items()},
            "excluded": [dict(row) for row in self.excluded],
            **{
                name: dict(zip(keys, values, strict=True))
                for name, values in self.columns.items()
                if name != "t"
            },
        }

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        integers = [name for name in self.columns if name == "t" or name.startswith("num_")]
        return pa.table(
            {
                name: pa.array(values, pa.int64() if name in integers else pa.float64())
                for name, values in self.columns.items()
            }
        )

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def describe(self) -> str:
        """Describe the scored records and parameters in one line."""
        return describe(self)

    def __str__(self) -> str:
        return table_of(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(describe(self), *_cells(self), notes=notes(self))


def describe(scores: Scores) -> str:
    """Describe the scored records and parameters in one line."""
    families = counted(scores.num_families, "family", "families")
    samples = counted(scores.num_samples, "sample")
    return (
        f"{scores.metric}(t) of {printable_line(scores.compiler or 'the compiler')}: {samples} "
        f"of {families}; p = {scores.p:g}, b = {scores.b:g}, variant {scores.variant}"
    )


def notes(scores: Scores) -> list[str]:
    """Return notes about excluded, flagged and unknown runs."""
    lines = []
    for why, rows in _by_cause(scores.excluded).items():
        names = [f"{row['sample_id']} ({row['status']})" for row in rows]
        if why != _FAILED:
            names = [row["sample_id"] for row in rows]
        listed = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        lines.append(f"Not in N: {len(names)}, since {why}: {listed}")
    if scores.warnings:
        lines.append(sentence(scores.warnings))
    for name, values in list(scores.conditions.items())[:_MAX_CONDITIONS]:
        lines.append(f"Merged over {len(values)} values of {name}: {say_values(values)}")
    if len(scores.conditions) > _MAX_CONDITIONS:
        others = ", ".join(list(scores.conditions)[_MAX_CONDITIONS:])
        lines.append(f"Merged over several values of {others}")
    if scores.num_nondeterministic:
        lines.append(
            f"Nondeterministic under eager: {counted(scores.num_nondeterministic, 'sample')}"
            + ("" if scores.variant.startswith("upstream") else ", judged above their own floor")
        )
    if scores.num_without_family:
        lines.append(
            f"Without a family: {counted(scores.num_without_family, 'sample')}, each counted as "
            "one of its own"
        )
    return [printable_line(line) for line in lines]


_FAILED = "eager or the harness failed"
_CAUSES = {
    IMPOSSIBLE: "they were faster than the device can be (impossibly_fast)",
    "nondeterministic": "eager differs from itself by as much as from zeros",
    UNDECIDABLE: "their outputs allow no verdict (undecidable)",
}
_MAX_CONDITIONS = 8


def _by_cause(excluded: tuple[dict[str, Any], ...]) -> dict[str, list[dict[str, Any]]]:
    runs_by_cause: dict[str, list[dict[str, Any]]] = {}
    for row in excluded:
        is_ok = row["status"] == Status.OK
        runs_by_cause.setdefault(_CAUSES[row["reason"]] if is_ok else _FAILED, []).append(row)
    return runs_by_cause


def _cells(scores: Scores) -> tuple[list[str], list[list[str]]]:
    metric = scores.metric
    kinds = _kinds(scores)
    shares = [name for name in scores.columns if name == "gamma" or name.startswith("pi_")]
    head = ["t", metric, "95 %", f"{metric} family", "95 %", "alpha", "beta", "lambda", "eta"]
    head += [*shares, "correct", *(name.removeprefix("num_") for name in kinds)]
    head += ["vacuous", "undecidable"]
    rows = []
    for row in scores:
        cells = [str(row["t"])]
        for name in (metric, f"{metric}_family"):
            cells += [number(row[name]), interval(row[f"{name}_low"], row[f"{name}_high"])]
        cells += [number(row[name]) for name in ("alpha", "beta", "lambda", "eta", *shares)]
        cells += [str(row[name]) for name in ("num_correct", *kinds)]
        cells += [percentage(row["vacuous_share"]), percentage(row["undecidable_share"])]
        rows.append(cells)
    return head, rows


def table_of(*scores: Scores, is_folded: bool = False) -> str:
    """Return S(t), ES(t) or both of the same records, in tables that fit 80 columns.

    With `is_folded`, consecutive rows that differ only in t become one row.
    """
    first = scores[0]
    names = " and ".join(f"{score.metric}(t)" for score in scores)
    head = ["t", *(word for score in scores for word in (score.metric, "95 %", "family"))]
    rows = []
    for by_metric in zip(*scores, strict=True):
        cells = [str(by_metric[0]["t"])]
        for score, row in zip(scores, by_metric, strict=True):
            cells.append(number(row[score.metric]))
            cells.append(interval(row[f"{score.metric}_low"], row[f"{score.metric}_high"]))
            cells.append(number(row[f"{score.metric}_family"]))
        rows.append([*cells, str(by_metric[0]["num_correct"])])
    component_head, component_rows = _component_cells(scores[-1])
    if is_folded:
        rows, component_rows = fold_rows(rows), fold_rows(component_rows)
    tables = [text_table([*head, "correct"], rows), text_table(component_head, component_rows)]
    caption = describe(first).replace(f"{first.metric}(t)", names, 1)
    return "\n".join([caption, "", *"\n\n".join(tables).splitlines(), *notes(first)])


def fold_rows(rows: list[list[str]]) -> list[list[str]]:
    """Merge consecutive rows that differ only in their first cell.

    >>> fold_rows([["-2", "a"], ["-1", "a"], ["0", "a"], ["1", "b"]])
    [['-2 to 0', 'a'], ['1', 'b']]
    """
    folded = []
    for _, group in itertools.groupby(rows, key=lambda row: row[1:]):
        first, *others = group
        place = f"{first[0]} to {others[-1][0]}" if others else first[0]
        folded.append([place, *first[1:]])
    return folded


def _component_cells(scores: Scores) -> tuple[list[str], list[list[str]]]:
    shares = [name for name in scores.columns if name == "gamma"]
    columns = ["alpha", "beta", "lambda", "eta", *shares]
    kinds = _kinds(scores)
    rows = [
        [
            str(row["t"]),
            *(number(row[name]) for name in columns),
            *(str(row[name]) for name in kinds),
            percentage(row["vacuous_share"]),
            percentage(row["undecidable_share"]),
        ]
        for row in scores
    ]
    names = [kind.removeprefix("num_") for kind in kinds]
    return ["t", *columns, *names, "vacuous", "undec."], rows


def _kinds(scores: Scores) -> list[str]:
    same = {"num_correct"}
    if len(set(scores.columns["num_samples"])) == 1:
        same.add("num_samples")
    return [name for name in scores.columns if name.startswith("num_") and name not in same]


def number(value: float | None) -> str:
    """Format a score with three decimals, like the report.

    >>> number(1.2345), number(None)
    ('1.234', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """Format an interval.

    >>> interval(0.9, 1.1), interval(None, None)
    ('0.900 … 1.100', '')
    """
    return "" if low is None or high is None else f"{low:.3f} … {high:.3f}"


def percentage(share: float | None) -> str:
    """Format a share as a percentage.

    >>> percentage(0.125), percentage(None)
    ('12 %', '-')
    """
    return "-" if share is None else f"{100 * share:.0f} %"
