"""`graphnet import` and `export`: GraphNet directories and dataset directories, in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..terminal import counted
from .counting import PARTLY, show_count, show_report
from .disk import new_output
from .terminal import echo

app = typer.Typer()


@app.command("import", epilog="Example: graphnet import samples/ paddle_samples/ --out mine")
def import_trees(
    directories: Annotated[
        list[Path],
        typer.Argument(
            help="GraphNet sample directories, trees of them, or a .txt file of operator calls."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="The dataset directory to write, or a file that ends in .parquet.")
    ],
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Parallel processes. Default: one per processor.")
    ] = None,
    executor: Annotated[
        str, typer.Option(help="local, or ray: a cluster whose nodes share the directories.")
    ] = "local",
    costs: Annotated[
        bool, typer.Option("--costs", help="Also compute FLOPs, bytes and memory (much slower).")
    ] = False,
    keep_duplicates: Annotated[
        bool,
        typer.Option("--keep-duplicates", help="Keep duplicates of graphs in other directories."),
    ] = False,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Run each graph to calibrate its inputs (much slower)."),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(help="JSON lines, one per directory. Default: import-report.jsonl in --out."),
    ] = None,
) -> None:
    """Read GraphNet sample directories into a dataset.

    The same command continues after an interruption. Exits with 0 if every directory was read, with
    3 if some could not be read (the report lists the reasons), and with 1 if nothing was written. A
    text file contains operator calls in the form of BackendBench, each of which becomes a sample.
    """
    if len(directories) == 1 and directories[0].suffix == ".txt":
        _import_calls(directories[0], out)
        return
    from ..storage.importing import import_directories

    with new_output(out, report), show_count("Reading", "directories") as count:
        done = import_directories(
            directories,
            out,
            jobs=jobs,
            executor=executor,
            has_costs=costs,
            keeps_duplicates=keep_duplicates,
            report=report,
            on_progress=count,
        )
    failures = [f"{failure.path}: {failure.reason}" for failure in done.failures]
    status = show_report(done, failures, "read", "directory", "directories")
    if calibrate and done.out:
        from .calibrate import run_calibration

        run_calibration(done.out, jobs=jobs)
    raise typer.Exit(status)


def _import_calls(path: Path, out: Path) -> None:
    from ..storage.importing import import_operator_calls

    with new_output(out):
        number, reasons = import_operator_calls(path, out)
    for place, reason in reasons.items():
        echo(f"{path}, {place}: {reason}", err=True)
    echo(f"{counted(number, 'sample')} in {out}")
    if reasons:
        raise typer.Exit(PARTLY)


@app.command("export", epilog="Example: graphnet export graphnet")
def export(
    directory: Annotated[
        str, typer.Argument(help="The output, which must not exist: a path, or `s3://…`.")
    ],
    dataset: Annotated[
        str,
        typer.Option(help="`graphnet`, `org/name` on the Hub, or a path that starts with `./`."),
    ] = "graphnet",
    form: Annotated[
        str,
        typer.Option(
            "--format", help="`parquet` for `datasets`, `graphnet` for a directory per sample."
        ),
    ] = "parquet",
) -> None:
    """Write a dataset as a directory.

    `datasets.load_dataset("DIRECTORY", "cv")` loads it. With `--format graphnet`, graphs that
    cannot be written as directories are listed, and the exit status is 3.
    """
    if form == "parquet":
        from ..storage.export import export_dataset

        with new_output(directory):
            export_dataset(directory, dataset)
        echo(f"{dataset} written to {directory}")
    elif form == "graphnet":
        from ..storage.export import export_directories

        with new_output(directory), show_count("Writing", "directories") as count:
            done = export_directories(directory, dataset, on_progress=count)
        for name, reason in done.failures:
            echo(f"{name}: {reason}", err=True)
        written = counted(done.num_written, "sample directory", "sample directories")
        echo(f"{written} written to {directory}")
        if done.failures:
            left_out = counted(len(done.failures), "graph was", "graphs were")
            echo(f"{left_out} left out", err=True)
            raise typer.Exit(PARTLY)
    else:
        raise typer.BadParameter("Expected `parquet` or `graphnet`.", param_hint="--format")
