"""`graphnet run`: time samples under compilers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .compare import REGRESSED
from .counting import PARTLY, stoppable
from .groups import with_groups
from .run_options import ComparisonOptions, CompilerOptions, MeasurementOptions
from .selection import SelectionOptions
from .terminal import echo
from .verdicts import VerdictPrinter

app = typer.Typer()


@app.command(
    "run",
    epilog="Example: graphnet run cv nlp --max-ops 200 --compiler inductor --out runs",
)
@with_groups
def run_samples(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Tasks, `all`, ids of samples, or paths (a GraphNet directory, a directory of "
            "them, a dataset directory, a Parquet file). Default: all."
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the records. Default: runs.")
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option(
            help="Repeat a recorded run, runs/RUN_ID, with its settings and inputs; of the other "
            "options only `--out`, `--dataset` and `--trust-remote-code` apply."
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(help="cpu, cuda (the first GPU), cuda:N, or several: cuda:0,cuda:1.")
    ] = "cpu",
    executor: Annotated[
        str, typer.Option(help="local, or ray: every GPU or node of a Ray cluster.")
    ] = "local",
    profile: Annotated[
        bool, typer.Option("--profile", help="Print the time spent in each phase.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit 3 if a run is wrong or failed; for a graph of `compiler_bugs`, if its "
            "verdict differs from the expected one or is missing.",
        ),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            show_default="2 on a CPU, 1 on a GPU",
            help="Number of samples in progress: while one is timed, others are compiled and "
            "judged without disturbing it.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per run, then one per compiler.")
    ] = False,
    compilers: CompilerOptions,
    selection: SelectionOptions,
    measurement: MeasurementOptions,
    comparison: ComparisonOptions,
) -> None:
    """Time each sample under eager and under each compiler, in a separate process.

    Each run prints its verdict: right with its speedup, WRONG, failed or undecidable. The last
    lines are the verdict on each compiler. Records are written one by one, and the same command
    continues after an interruption. With `--reference` or `--against`, the default compiler is
    eager. `--against` exits with 3 if outputs differ, a sample is broken, or a sample is slower
    than allowed.
    """
    from ..benchmark import (
        VERDICTS_NAME,
        TimeSpent,
        compare_with_reference,
        expected_verdicts,
        run_again,
        run_records,
    )
    from ..scores import describe_expectations

    if again is not None:
        dataset = None if selection.dataset == "graphnet" else selection.dataset
        trusted = measurement.trust_remote_code
        echo(run_again(again, out=out, dataset=dataset, trust_remote_code=trusted))
        return
    is_control, against = comparison.is_control, comparison.against
    out = comparison.place(out)
    time_spent = TimeSpent() if profile else None
    printer = VerdictPrinter(out, is_json=as_json)
    with stoppable(f"Finished runs are in `{out}`"):
        runs = run_records(
            names or ["all"],
            compilers.names(selection.only_framework, is_control=is_control),
            device,
            out,
            options=compilers.options(),
            filters=selection.filters(),
            source=selection.dataset,
            settings=measurement.settings(),
            executor=executor,
            keep_outputs=is_control,
            against=against,
            time_spent=time_spent,
            jobs=jobs,
            on_record=printer.show,
        )
    if time_spent is not None:
        echo(f"\n{time_spent}", err=as_json)
    expectations = expected_verdicts(runs, selection.dataset)
    expected = {(item.sample_id, item.compiler) for item in expectations}
    has_failures = printer.close(runs, expected=expected)
    if expectations:
        echo(f"\n{describe_expectations(expectations)}", err=as_json)
    if against is not None:
        verdicts = compare_with_reference(
            out,
            against,
            run_ids=runs["run_id"].to_pylist(),
            tolerance=comparison.tolerance,
            threshold=comparison.threshold,
        )
        verdicts.write(out / VERDICTS_NAME)
        echo(
            f"\nAgainst `{against}`; the table is `{out / VERDICTS_NAME}`:\n\n{verdicts}",
            err=as_json,
        )
        if verdicts.regressions:
            raise typer.Exit(REGRESSED)
    if strict and (has_failures or not all(item.is_met for item in expectations)):
        raise typer.Exit(PARTLY)
