"""`graphnet score`, `graphnet plot`, `graphnet report` and `graphnet import-log`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ScoreError
from ..terminal import counted
from .disk import new_output
from .groups import with_groups
from .selection import SelectionOptions
from .terminal import echo

if TYPE_CHECKING:
    import pyarrow as pa

    from ..scores import Scores

app = typer.Typer()

_OTHER_FILES = (".pdf", ".png", ".svg", ".md", ".txt", ".json", ".csv", ".parquet")
"""Suffixes of files that `report` does not write."""

RunSets = Annotated[
    list[Path], typer.Argument(help="Directories of runs, Parquet files, or `graphnet`.")
]
Penalty = Annotated[
    float | None,
    typer.Option("--p", help="Penalty of slow samples; 0.1, and 0 in upstream's variants."),
]
FailureValue = Annotated[float, typer.Option("--b", help="Value of a failed sample.")]
VariantName = Annotated[
    str, typer.Option("--variant", help="report, decidable, upstream or upstream-extended.")
]
CompilerName = Annotated[
    str | None, typer.Option("--compiler", help="Only the runs of this compiler.")
]
DuplicatesRule = Annotated[
    str,
    typer.Option("--duplicates", help="Rule for several runs of a sample: refuse or newest."),
]


@app.command(
    "score",
    help="Print the correctness and speed of compilers from run records.",
    epilog="Example: graphnet score runs other-runs --by-task",
)
@with_groups
def score(
    runs: RunSets,
    p: Penalty = None,
    b: FailureValue = 0.1,
    variant: VariantName = "report",
    compiler: CompilerName = None,
    duplicates: DuplicatesRule = "refuse",
    by_task: Annotated[bool, typer.Option("--by-task", help="Also score each task.")] = False,
    by_subtask: Annotated[
        bool, typer.Option("--by-subtask", help="Also score each subtask: detection, causal-lm, …")
    ] = False,
    by_size: Annotated[
        bool,
        typer.Option("--by-size", help="Also score short, medium and long calls (1 and 10 ms)."),
    ] = False,
    by_sample: Annotated[
        bool, typer.Option("--by-sample", help="List the samples, the largest headroom first.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Print S(t) and ES(t) at every t, and their components.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per compiler.")] = False,
    *,
    selection: SelectionOptions,
) -> None:
    from ..scores import samples, split_by, summarise
    from ..scores.latency import SizeClass, split_by_size
    from ..scores.text import text_table

    options = _score_options(p, b, variant, duplicates)
    arms = filter_arms(_run_sets(runs, compiler), selection)
    columns = ["task"] * by_task + ["subtask"] * by_subtask
    if as_json:
        for name, table in arms.items():
            result = {"arm": name, "summary": summarise(table, **options).to_dict()}
            # An arm without a run that counts has a summary, but no scores.
            if len(arms) == 1 or _scorable_parts({name: table}, options):
                result |= _as_json(table, options)
            for column in columns:
                parts = _scorable_parts(split_by(table, column), options)
                result[f"by_{column}"] = {
                    value: _as_json(part, options) for value, part in parts.items()
                }
            if by_size:
                result["by_size"] = {
                    str(size): summarise(of_size[name], **options).to_dict()
                    for size, of_size in split_by_size({name: table}).items()
                }
            if by_sample:
                result["by_sample"] = samples.plain(
                    samples.by_sample(table, duplicates=options["duplicates"])
                )
            echo(json.dumps(result, allow_nan=False))
        return
    _print_arms(arms, options, is_full=full, has_headline=True)
    for size, of_size in split_by_size(arms).items() if by_size else ():
        echo(f"\nEager {size}" if size is not SizeClass.UNKNOWN else f"\n{size.capitalize()}")
        _print_arms(of_size, options, is_full=full)
    for column in columns:
        parts = {name: split_by(table, column) for name, table in arms.items()}
        for value in sorted({value for part in parts.values() for value in part}):
            echo(f"\n{column.capitalize()} {value}")
            of_value = {name: part[value] for name, part in parts.items() if value in part}
            _print_arms(of_value, options, is_full=full)
    if by_sample:
        for name, table in arms.items():
            rows = samples.by_sample(table, duplicates=options["duplicates"])
            echo(f"\n{name}" if len(arms) > 1 else "")
            echo(text_table(*samples.cells_by_sample(rows)))


def _print_arms(
    arms: dict[str, pa.Table],
    options: dict[str, Any],
    *,
    is_full: bool,
    has_headline: bool = False,
) -> None:
    """Print a row per arm, the conclusions, and with `is_full` the scores at each t.

    With `has_headline` also print the headline of each machine, and the legend.
    """
    from ..scores import summarise_arms
    from ..scores.machines import split_machines
    from ..scores.summary_text import (
        LEGEND,
        arms_table,
        conclusions,
        headline,
        short_names,
        with_short_names,
    )

    summaries = summarise_arms(arms, **options)
    labels = short_names([summary.name for summary in summaries])
    summaries, names = with_short_names(summaries)
    echo(arms_table(summaries))
    for line in names:
        echo(line)
    echo("")
    for machine, parts in split_machines(arms).items() if has_headline else ():
        of_machine = summarise_arms(parts, **options)
        renamed = [dataclasses.replace(row, name=labels[row.name]) for row in of_machine]
        echo(headline(renamed, machine))
    for line in conclusions(summaries):
        echo(line)
    for name, table in arms.items() if is_full else ():
        echo("")
        try:
            echo(_as_text(table, options))
        except ScoreError as error:
            echo(f"{name}: {error}")
    if has_headline:
        echo("")
        for line in LEGEND:
            echo(line.format(b=options["b"]))


def read_arms(runs: Path, compiler: str | None = None) -> dict[str, pa.Table]:
    """Return the run records at a path by arm, optionally only those of one compiler.

    If no such path exists, `graphnet` refers to the embedded records.

    Raises:
        ScoreError: there are no records, or none of this compiler.
    """
    from ..schema.tables import RUNS
    from ..scores import as_table, split_arms
    from ..storage.loading import DEFAULT_NAME, STARTER

    is_embedded = str(runs) == DEFAULT_NAME and not runs.exists()
    arms = split_arms(as_table(STARTER / RUNS.name if is_embedded else runs))
    if not arms:
        raise ScoreError(f"`{runs}` contains no run records. Create some with `graphnet run`.")
    if compiler is None:
        return arms
    chosen = {
        name: arm
        for name, arm in arms.items()
        if name == compiler or name.startswith(f"{compiler} (")
    }
    if not chosen:
        raise ScoreError(
            f"`{runs}` contains no runs of `{compiler}`, only of "
            f"{', '.join(f'`{name}`' for name in arms)}."
        )
    return chosen


def filter_arms(arms: dict[str, pa.Table], selection: SelectionOptions) -> dict[str, pa.Table]:
    """Return the runs of the selected samples, by arm.

    Columns that run records lack are read from the dataset.

    Raises:
        ScoreError: no record matches; the message names the nearest filters that keep records.
    """
    from ..storage.filters import nearest_choices
    from ..storage.selection import describe_samples

    filters = selection.filters()
    if not filters.active and filters.limit is None:
        return arms
    ids = {sample for arm in arms.values() for sample in arm["sample_id"].to_pylist()}
    columns = {*filters.columns().values(), "num_ops"} - {"id"}
    samples: dict[str, dict[str, Any]] = {sample: {"id": sample} for sample in sorted(ids)}
    is_recorded = all(columns <= {*arm.column_names} for arm in arms.values())
    if is_recorded:
        for arm in arms.values():
            rows = arm.select(["sample_id", *columns]).to_pylist()
            samples |= {row["sample_id"]: {**row, "id": row["sample_id"]} for row in rows}
    else:
        described = describe_samples(selection.dataset, sorted(ids), sorted(columns))
        samples |= {row["id"]: row for row in described}
    selected = [name for name, row in samples.items() if filters.keeps(row)]
    if not selected:
        full_rows = [row for row in samples.values() if len(row) > 1]
        hint = nearest_choices(filters, full_rows, "samples")
        lacking = len(samples) - len(full_rows)
        unknown = (
            f" `{selection.dataset}` lacks {counted(lacking, 'sample')} of the records; name "
            "their dataset with `--dataset`."
            if lacking
            else ""
        )
        raise ScoreError(
            f"No run record matches `{filters.describe(filters.active)}`. {hint}".rstrip() + unknown
        )
    selected.sort(key=lambda name: (samples[name].get("num_ops") or 0, name))
    chosen = frozenset(selected[: filters.limit])
    parts = {name: of_samples(arm, chosen) for name, arm in arms.items()}
    return {name: part for name, part in parts.items() if part.num_rows}


def of_samples(runs: pa.Table, ids: frozenset[str]) -> pa.Table:
    """Return the run records of some samples."""
    import pyarrow as pa

    return runs.filter(pa.array([name in ids for name in runs["sample_id"].to_pylist()]))


def check_duplicates(duplicates: str) -> Any:
    """Return the valid rule for several runs of a sample.

    Raises:
        ScoreError: the rule is neither "refuse" nor "newest".
    """
    if duplicates not in ("refuse", "newest"):
        raise ScoreError(f"`--duplicates` is `{duplicates}`, but it must be `refuse` or `newest`.")
    return duplicates


def _score_options(p: float | None, b: float, variant: str, duplicates: str) -> dict[str, Any]:
    from ..scores.variants import find_variant

    find_variant(variant)  # before the records are read
    return {"p": p, "b": b, "variant": variant, "duplicates": check_duplicates(duplicates)}


def _both(table: pa.Table, options: dict[str, Any]) -> tuple[Scores, Scores]:
    from ..scores import error_aware_speedup_score, speedup_score

    return speedup_score(table, **options), error_aware_speedup_score(table, **options)


def _as_text(table: pa.Table, options: dict[str, Any]) -> str:
    from ..scores.result import table_of

    return table_of(*_both(table, options), is_folded=True)


def _as_json(table: pa.Table, options: dict[str, Any]) -> dict[str, Any]:
    s, es = _both(table, options)
    return s.to_dict() | es.to_dict()


def _scorable_parts(parts: Mapping[str, pa.Table], options: dict[str, Any]) -> dict[str, pa.Table]:
    """Return the parts with at least one run that counts."""
    from ..scores.records import make_records
    from ..scores.variants import find_variant

    variant = find_variant(options["variant"])
    return {name: part for name, part in parts.items() if make_records(part, variant).num_samples}


@app.command(
    "import-log",
    help="Convert a benchmark log of upstream GraphNet to run records.",
    epilog="Example: graphnet import-log benchmark.log --out runs",
)
def import_log(
    log: Annotated[Path, typer.Argument(help="The output of upstream's `test_compiler`.")],
    out: Annotated[Path, typer.Option("--out", help="A directory, or a file named *.parquet.")],
) -> None:
    from collections import Counter

    from ..benchmark.upstream.log import import_log

    with new_output(out):
        runs = import_log(log, out=out)
    counts = Counter(runs["status"])
    listed = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    echo(f"{counted(len(runs), 'run')} written to {out}: {listed}")


@app.command(
    "plot",
    help="Plot S(t), ES(t) and the speedups of run records, as PNG and SVG.",
    epilog="Example: graphnet plot runs-inductor runs-torchscript --out plots",
)
def plot(
    runs: RunSets,
    out: Annotated[Path, typer.Option("--out", help="Output directory of the plots.")],
    p: Penalty = None,
    b: FailureValue = 0.1,
    variant: VariantName = "report",
    compiler: CompilerName = None,
    duplicates: DuplicatesRule = "refuse",
) -> None:
    from ..report import plot_runs

    options = _score_options(p, b, variant, duplicates)
    with new_output(out, kind="directory"):
        written = plot_runs(_drawable(_run_sets(runs, compiler), options), out, **options)
    for path in written:
        echo(str(path))


@app.command(
    "report",
    help="Write a site about run records, or one HTML page with their scores and pictures.",
    epilog="Example: graphnet report runs-inductor runs-torchscript --out site",
)
def report(
    runs: RunSets,
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="The directory of the site, or an .html file for a single page."
        ),
    ],
    title: Annotated[str, typer.Option(help="Heading.")] = "Scores of tensor compilers",
    dataset: Annotated[
        str, typer.Option(help="Dataset of the graphs that the site draws: a name or a path.")
    ] = "graphnet",
    pictures: Annotated[bool, typer.Option(help="Draw the graphs of a site's samples.")] = True,
    p: Penalty = None,
    b: FailureValue = 0.1,
    variant: VariantName = "report",
    compiler: CompilerName = None,
    duplicates: DuplicatesRule = "refuse",
) -> None:
    from ..report import write_page, write_site

    is_page = out.suffix.lower() in (".html", ".htm")
    if not is_page and (out.is_file() or (out.suffix.lower() in _OTHER_FILES and not out.exists())):
        raise typer.BadParameter(
            f"`{out}` names a file. Name a directory for a site, or an .html file for a single "
            "page.",
            param_hint="--out",
        )
    options = {"title": title, **_score_options(p, b, variant, duplicates)}
    with new_output(out, kind="file" if is_page else "directory"):
        if is_page:
            written = write_page(_drawable(_run_sets(runs, compiler), options), out, **options)
        else:
            source = dataset if pictures else None
            site = write_site(_run_sets(runs, compiler), out, dataset=source, **options)
            written = site / "index.html"
    echo(str(written))


def _drawable(arms: dict[str, pa.Table], options: dict[str, Any]) -> dict[str, pa.Table]:
    """Return the arms with a run that counts, or all arms if no run counts; print the others."""
    drawable = _scorable_parts(arms, options)
    for name in arms if drawable else ():
        if name not in drawable:
            echo(f"`{name}` is left out, because none of its runs counts.", err=True)
    return drawable or arms


def _run_sets(paths: list[Path], compiler: str | None) -> dict[str, pa.Table]:
    """Return the arms of several run sets, prefixed with their path if there are several."""
    return {
        name if len(paths) == 1 else f"{path}: {name}": table
        for path in paths
        for name, table in read_arms(path, compiler).items()
    }
