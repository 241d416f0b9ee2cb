"""`graphnet check`: judge a function or module that replaces the graph of one sample."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from .counting import PARTLY
from .groups import with_groups
from .run_options import MeasurementOptions
from .terminal import echo

app = typer.Typer()


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckOptions(MeasurementOptions):
    """The options of `graphnet run`; other sizes are tried by default."""

    title: ClassVar[str] = "Measurement"

    vary: Annotated[
        int,
        typer.Option(
            help="Also call the candidate with this many sizes of a symbolic graph and values of "
            "its scalar inputs (at least 3). Default: 4 for such graphs."
        ),
    ] = 0


@app.command(
    "check",
    epilog="Example: graphnet check torch/resnet-18 my_kernel.py --timeout compile=60",
)
@with_groups
def check_candidate(
    sample: Annotated[
        str, typer.Argument(metavar="SAMPLE", help="A sample's id, or a path with one sample.")
    ],
    candidate: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A Python file, or file.py:NAME if it defines several candidates."
        ),
    ],
    *,
    out: Annotated[
        Path | None, typer.Option(help="Directory for the record. Default: no record is stored.")
    ] = None,
    dataset: Annotated[str, typer.Option(help="Dataset of the id.")] = "graphnet",
    device: Annotated[str, typer.Option(help="cpu, cuda (the first GPU) or cuda:N.")] = "cpu",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    measurement: CheckOptions,
) -> None:
    """Judge and time a function or module that replaces the graph of a sample.

    A function takes the inputs of the sample in order, weights included, or by their names as
    `graphnet show ID` prints them. The constructor of a module takes weights by name, and
    `forward` the remaining inputs. The file runs only in a confined process. Exits with 0 if the
    candidate is right, and with 3 otherwise.
    """
    from ..frameworks import framework_names
    from ..frameworks.builds import check_device

    check_device(device, framework_names())
    from ..benchmark.checking import check
    from ..scores import Outcome

    result = check(
        sample,
        candidate,
        device=device,
        out=out,
        source=dataset,
        settings=measurement.settings(),
    )
    if as_json:
        echo(json.dumps(result.to_dict()))
    else:
        is_bad = result.outcome in (Outcome.WRONG, Outcome.FAILED)
        first, *others = result.lines()
        echo(first, colour="red" if is_bad else None)
        for line in others:
            echo(line)
    if not result.is_right:
        raise typer.Exit(PARTLY)
