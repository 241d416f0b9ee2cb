"""The complete site: its pages, written atomically."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...atomic import replaced_directory, write_text
from ...errors import ScoreError, raises_only
from ...scores import as_table
from ...scores.run_sets import Duplicates
from ...scores.variants import TOLERANCE, find_variant
from ...scores.verdicts import Verdict
from ...terminal import printable_data
from ..labels import compact_names
from ..names import slug
from .arms import Arm, environment_name, environment_parts, make_arm
from .boards import Board, dates_text, make_board, make_machines
from .chunks import plain_floats, write_chunk
from .pages import Renderer, parts_of
from .pictures import write_pictures
from .samples import SampleRecords, group_by_sample

MARK = "graphnet-site.txt"
"""The file that marks a directory as a site, which may be replaced."""
PER_CHUNK = 20_000
"""Records per data file, so that a page loads only a few of them."""


@raises_only(ScoreError)
def write_site(
    run_sets: Mapping[str, Any],
    out: str | os.PathLike[str],
    *,
    title: str = "Scores of tensor compilers",
    dataset: str | os.PathLike[str] | None = "graphnet",
    p: float | None = None,
    b: float = 0.1,
    variant: str = "report",
    duplicates: Duplicates = "refuse",
) -> Path:
    """Write a site about run sets, the records of one arm by name, and return its directory.

    The pages need no server and no scripts, and load nothing from other addresses; scripts sort,
    filter and search their tables. Pictures of graphs come from `dataset`; None draws no pictures.
    An existing site at `out` is replaced when the new one is complete. Equal records produce equal
    bytes.

    Raises:
        ScoreError: there are no records, or a run set cannot be scored.
        DiskError: `out` contains something other than a site.
        MissingExtraError: jinja2 is not installed.
    """
    renderer = Renderer(title)
    options = {"p": p, "b": b, "variant": variant}
    tables = {name: as_table(runs) for name, runs in run_sets.items()}
    arms = [
        make_arm(name, table, options, duplicates, number)
        for number, (name, table) in enumerate(tables.items())
        if table.num_rows
    ]
    if not arms:
        raise ScoreError("There are no run records for a site. Create some with `graphnet run`.")
    arms = sorted(_with_different_names(arms), key=_rank)
    samples = group_by_sample(arms)
    short_names = compact_names([arm.name for arm in arms])
    scored = find_variant(variant)
    renderer.add_globals(
        arms=arms,
        short_names=short_names,
        p=scored.default_p if p is None else p,
        b=b,
        variant=variant,
        site=_counts(arms),
        machines=make_machines(arms, options),
        board_of=functools.partial(_board_of, options=options),
    )
    with _replaced_site(Path(out)) as place:
        for name in ("pictures", "data", "samples", "arms", "tasks", "subtasks", "environments"):
            (place / name).mkdir(parents=True)
        renderer.write_assets(place)
        pictures = {} if dataset is None else write_pictures(samples, dataset, place)
        _write_data(place / "data", arms, samples)
        renderer.add_globals(index=printable_data(_index(arms, samples, short_names)))
        _write_pages(renderer, place, arms, samples, pictures)
        write_text(place / MARK, f"{title}\nWritten by `graphnet report`.\n")
    return Path(out)


def _write_pages(
    renderer: Renderer,
    place: Path,
    arms: list[Arm],
    samples: list[SampleRecords],
    pictures: Mapping[str, str],
) -> None:
    tasks = sorted({sample.task for sample in samples})
    places = {arm.place for arm in arms}
    of_places = {(arm.place, frozenset(arm.table["sample_id"].to_pylist())) for arm in arms}
    are_alike = len(of_places) == len(places)
    renderer.write(place / "index.html", "index.html", tasks=tasks, are_alike=are_alike)
    renderer.write(place / "records.html", "records.html")
    renderer.write_parts(place / "samples.html", "samples.html", samples)
    for arm in arms:
        renderer.write_parts(place / "arms" / f"{arm.slug}.html", "arm.html", arm.rows, arm=arm)
    for task in tasks:
        chosen = [sample for sample in samples if sample.task == task]
        subtasks = sorted({sample.subtask for sample in chosen} - {""})
        renderer.write_parts(
            place / "tasks" / f"{renderer.task_slug(task)}.html",
            "task.html",
            chosen,
            task=task,
            subtasks=subtasks,
        )
        for subtask in subtasks:
            renderer.write_parts(
                place / "subtasks" / f"{renderer.subtask_slug(task, subtask)}.html",
                "subtask.html",
                [sample for sample in chosen if sample.subtask == subtask],
                task=task,
                subtask=subtask,
            )
    for sample in samples:
        renderer.write(
            place / "samples" / f"{sample.slug}.html",
            "sample.html",
            sample=sample,
            picture=pictures.get(sample.id),
        )
    environments = Counter(row["environment"] for arm in arms for row in arm.rows)
    for text, count in environments.items():
        if name := environment_name(text):
            renderer.write(
                place / "environments" / f"{name}.html",
                "environment.html",
                name=name,
                parts=environment_parts(text),
                num_records=count,
            )


FIGURES = (
    "speedup", "speedup_low", "speedup_high", "baseline_ms", "candidate_ms", "min_t",
    "compile_time_s",
)  # fmt: skip
"""Numeric columns of an arm's data that `site.js` reads."""


def _write_data(directory: Path, arms: list[Arm], samples: list[SampleRecords]) -> None:
    names = {
        "id": [sample.id for sample in samples],
        "page": [sample.slug for sample in samples],
        "task": [sample.task for sample in samples],
        "subtask": [sample.subtask for sample in samples],
        "num_ops": [sample.facts["num_ops"] for sample in samples],
    }
    write_chunk(directory / "samples.js", "samples", names)
    codes = list(Verdict)
    for arm in arms:
        for number, rows in enumerate(parts_of(arm.rows, PER_CHUNK)):
            columns: dict[str, list[Any]] = {
                "sample": [row["sample"].number for row in rows],
                "verdict": [codes.index(row["verdict"]) for row in rows],
                "error": [row["error_type"] or row["reason"] or "" for row in rows],
            }
            for name in FIGURES:
                values = [np.nan if row[name] is None else row[name] for row in rows]
                columns[name] = plain_floats(np.array(values, dtype=float))
            chunk = f"arm-{arm.slug}-{number}"
            write_chunk(directory / f"{chunk}.js", chunk, columns)


def _index(
    arms: list[Arm], samples: list[SampleRecords], short_names: Mapping[str, str]
) -> dict[str, Any]:
    """Return the index that the script of the pages needs before it loads data."""
    return {
        "verdicts": [str(verdict) for verdict in Verdict],
        "tasks": sorted({sample.task for sample in samples}),
        "subtasks": sorted({sample.subtask for sample in samples} - {""}),
        "arms": [
            {
                "name": arm.name,
                "short": short_names[arm.name],
                "page": arm.slug,
                "records": len(arm.rows),
                "chunks": len(parts_of(arm.rows, PER_CHUNK)),
            }
            for arm in arms
        ],
    }


def _counts(arms: list[Arm]) -> dict[str, Any]:
    return {
        "records": sum(len(arm.rows) for arm in arms),
        "samples": len({row["sample_id"] for arm in arms for row in arm.rows}),
        "dates": dates_text(arm.table for arm in arms),
    }


def _board_of(
    arms: list[Arm], title: str, options: Mapping[str, Any], **columns: str | None
) -> Board:
    """Return the table of the records of arms whose columns have these values."""
    tables = {arm.name: _where(arm.table, columns) for arm in arms}
    return make_board(title, {arm.name: arm for arm in arms}, tables, options)


def _where(table: pa.Table, columns: Mapping[str, str | None]) -> pa.Table:
    for name, value in columns.items():
        is_match = [(row or "unknown") == value for row in table[name].to_pylist()]
        table = table.filter(pa.array(is_match, pa.bool_()))
    return table


def _rank(arm: Arm) -> tuple[float, str]:
    """Sort key of arms: by score, arms without a score last."""
    score = None if arm.scores is None else arm.scores["S"].at(TOLERANCE)["S"]
    return (0.0 if score is None else -score, arm.name)


def _with_different_names(arms: list[Arm]) -> list[Arm]:
    """Distinguish arms of the same name, such as those of two machines, by their names."""
    count = Counter(arm.slug for arm in arms)
    for index, arm in enumerate(arms):
        if count[arm.slug] > 1:
            arms[index] = dataclasses.replace(arm, slug=slug(arm.name, arm.slug))
            for row in arm.rows:
                row["arm"] = arms[index]
    return arms


@contextlib.contextmanager
def _replaced_site(out: Path) -> Iterator[Path]:
    """Yield a directory that finally replaces an older site, or becomes a new one."""
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(out))
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(out))
    with replaced_directory(out) as place:
        yield place
