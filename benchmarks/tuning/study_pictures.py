"""Pictures of the study: the learning curve of picks, and trials by tuner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from study_text import Line, Lines, figures

from graphnet_datasets.atomic import replaced
from graphnet_datasets.report.style import COLOURS, import_figure, line_style, settings


def draw(found: Lines, folder: Path) -> list[tuple[str, Path]]:
    """Write the pictures that there are figures for; return titles and paths."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, title, lines, plot in (
        (
            "tuning-picks.svg",
            "What the first picks reach on held-out families, by rows to learn from",
            figures(found, "oneshot"),
            _picks,
        ),
        (
            "tuning-trials.svg",
            "Trials until 95 % of the best, by tuner",
            [line for line in figures(found, "alt", "alt-others") if "trials_to_95" in line],
            _trials,
        ),
    ):
        if lines:
            with settings():
                figure = import_figure()(figsize=(6.3, 2.8), layout="constrained")
                plot(figure, lines)
                with replaced(folder / name) as place:
                    figure.savefig(place, format="svg", metadata={"Date": None})
            made.append((title, folder / name))
    return made


def _picks(figure: Any, lines: Sequence[Line]) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    for axis, picks in zip(axes, (1, 5), strict=True):
        by_model: dict[str, list[Mapping[str, Any]]] = {}
        for line in lines:
            if line["picks"] == picks:
                by_model.setdefault(line["model"], []).append(line)
        for index, (model, own) in enumerate(by_model.items()):
            own = sorted(own, key=lambda line: line["rows"])
            values = np.array([line["of_best"] for line in own])
            ends = np.array([line["interval"] for line in own]).T
            rows = [line["rows"] for line in own]
            axis.plot(rows, values, label=model, **line_style(index))
            axis.fill_between(rows, *ends, color=COLOURS[index], alpha=0.15, linewidth=0)
        axis.set_xscale("log")
        axis.set_xlabel("rows of other families")
        axis.set_title(f"{picks} {'pick' if picks == 1 else 'picks'}")
    axes[0].set_ylabel("best known over picked")
    axes[0].set_ylim(0, 1)
    axes[0].legend()


def _trials(figure: Any, lines: Sequence[Line]) -> None:
    axis = figure.subplots()
    names = [line["tuner"] for line in lines]
    values = np.array([line["trials_to_95"] for line in lines])
    ends = np.array([line["interval"] for line in lines]).T
    axis.barh(names, values, xerr=np.abs(ends - values), color=COLOURS[0], capsize=3)
    axis.invert_yaxis()
    axis.set_xlabel("trials, with the 95 % interval over tasks")
