"""`graphnet doctor`: the state of this machine, and the diagnosis of a compiler."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .bisect import check_compiler, show_bisection
from .counting import PARTLY, stoppable
from .groups import with_groups
from .run_options import MeasurementOptions
from .terminal import echo
from .verdicts import VerdictPrinter

if TYPE_CHECKING:
    from ..diagnosis.machine import Machine
    from ..diagnosis.result import Diagnosis

app = typer.Typer()

TIMEOUTS = ("load=60", "baseline=60", "compile=90", "run=60", "profile=30", "oracle=60")
"""Timeouts of a diagnosis: one graph that hangs must not use up the time of all others."""
LABEL_WIDTH = 12


@app.command(
    "doctor",
    epilog="Example: graphnet doctor my_compiler.py:Mine --minutes 5 --out doctor",
)
@with_groups
def diagnose_compiler(
    compiler: Annotated[
        str | None,
        typer.Argument(
            help="A name of `graphnet compilers`, module:attribute, or file.py:attribute. "
            "Default: none; only the state of the machine is printed."
        ),
    ] = None,
    *,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of the compiler, name=value (repeatable).")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Number of samples.")] = 24,
    minutes: Annotated[
        float,
        typer.Option(min=0.1, help="Time for the runs (60 %) and for the bisections."),
    ] = 5.0,
    out: Annotated[
        Path, typer.Option(help="Directory of the page, the records and the minimal tests.")
    ] = Path("doctor"),
    dataset: Annotated[
        str, typer.Option(help="Where samples are chosen from: a name or a path.")
    ] = "graphnet",
    device: Annotated[str, typer.Option(help="cpu, cuda (the first GPU) or cuda:N.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    measurement: MeasurementOptions,
) -> None:
    """Examine a compiler on a small subset, or print the state of this machine.

    Runs graphs of all tasks, frequent parts and known compiler bugs as `graphnet run` does, and
    reduces the worst three samples to tests as `graphnet bisect` does. One HTML page contains all
    results. Exits with 3 if a run is wrong or failed. The same command continues after an
    interruption.
    """
    from ..diagnosis.machine import Machine

    machine = Machine.read()
    if compiler is None:
        _print_machine(machine, as_json=as_json)
        return
    from ..compilers import parse_options
    from ..frameworks import framework_names
    from ..frameworks.builds import check_device

    check_device(device, framework_names())
    options = parse_options(option or [])
    framework = check_compiler(compiler)
    limits = [*TIMEOUTS, *(measurement.timeout or [])]
    settings = dataclasses.replace(measurement, timeout=limits).settings()
    from ..diagnosis.choosing import choose_subset
    from ..diagnosis.diagnosing import diagnose
    from ..diagnosis.page import write_diagnosis

    for sentence in machine.warnings():
        echo(sentence, err=True)
    printer = VerdictPrinter(out)
    with stoppable(f"Finished runs and trials are in `{out}`"), show_bisection() as on_progress:
        subset = choose_subset(compiler, count, framework=framework, dataset=dataset)
        diagnosis = diagnose(
            compiler,
            subset,
            out,
            options=options,
            framework=framework,
            dataset=dataset,
            device=device,
            settings=settings,
            seconds=minutes * 60,
            on_record=None if as_json else printer.show,
            on_progress=on_progress,
        )
        write_diagnosis(diagnosis)
    if as_json:
        echo(json.dumps(diagnosis.to_dict()))
    else:
        _print_diagnosis(diagnosis)
    if diagnosis.has_failures:
        raise typer.Exit(PARTLY)


def _print_diagnosis(diagnosis: Diagnosis) -> None:
    echo("")
    for label, text, is_bad in diagnosis.lines():
        echo(f"{label.ljust(LABEL_WIDTH)}{text}", colour="red" if is_bad else None)


def _print_machine(machine: Machine, *, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(machine.to_dict(), indent=2))
        return
    echo(f"Confinement  {machine.layers}")
    echo(f"Versions     {machine.packages}")
    echo(f"Machine      {machine.threads} threads, load {machine.load:.1f}")
    for sentence in machine.warnings():
        echo(f"\n{sentence}")
