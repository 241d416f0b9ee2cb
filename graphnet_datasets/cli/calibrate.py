"""`graphnet calibrate`: calibrates the input statistics in a dataset's tables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ..terminal import counted
from .counting import KEPT, MAX_FAILURES_SHOWN, PARTLY, show_count, stoppable
from .disk import new_output
from .terminal import echo

app = typer.Typer()


@app.command("calibrate", epilog="Example: graphnet calibrate mine/")
def calibrate(
    path: Annotated[
        Path, typer.Argument(help="A dataset directory, or a file that ends in .parquet.")
    ],
    device: Annotated[
        str, typer.Option(help="cpu, cuda or cuda:N for torch graphs; other graphs run on the CPU.")
    ] = "cpu",
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Parallel processes. Default: one per processor, 4 on a GPU."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also calibrate graphs that already have a calibration.")
    ] = False,
    max_input_gb: Annotated[float, typer.Option(help="Skip graphs with more GiB of inputs.")] = 2.0,
    max_gflop: Annotated[
        float | None,
        typer.Option(min=0, help="Run graphs of more GFLOP at smaller sizes."),
    ] = None,
) -> None:
    """Run each graph on the CPU or a GPU and fit its input statistics to it, in place.

    With recorded statistics alone, the values of many networks overflow or vanish; with calibrated
    statistics they behave like those of trained models. Recorded statistics stay in the table.
    Graphs that cannot be run share the calibration of a graph with the same weights. Run the same
    command again to continue after an interruption. Exits with 0 if every graph was calibrated,
    and with 3 if some were not (each is listed with the reason).
    """
    if not run_calibration(
        path,
        device=device,
        jobs=jobs,
        is_again=again,
        max_input_gb=max_input_gb,
        max_gflop=max_gflop,
    ):
        raise typer.Exit(PARTLY)


def run_calibration(
    path: Path,
    *,
    device: str = "cpu",
    jobs: int | None = None,
    is_again: bool = False,
    max_input_gb: float = 2.0,
    max_gflop: float | None = None,
) -> bool:
    """Calibrate the tables at a path, print a summary, and return whether every graph succeeded."""
    from ..storage.calibrating import calibrate_tables

    places = (path, *path.glob("*/*.parquet")) if path.exists() else ()
    with stoppable(KEPT), new_output(*places), show_count("Calibrating", "graphs") as count:
        done = calibrate_tables(
            path,
            device=device,
            jobs=jobs,
            is_again=is_again,
            max_input_bytes=int(max_input_gb * 2**30),
            max_flops=math.inf if max_gflop is None else max_gflop * 1e9,
            on_progress=count,
        )
    for name, reason in list(done.failures.items())[:MAX_FAILURES_SHOWN]:
        echo(f"{name}: {reason}", err=True)
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(done.counts.items()))
    echo(f"{counted(sum(done.counts.values()), 'graph')} in {path}: {kinds}")
    return not done.failures
