"""`graphnet convert`: writes samples in the formats of other tools and checks them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from .counting import PARTLY, show_count, stoppable
from .disk import new_output
from .groups import with_groups
from .selection import SelectionOptions
from .terminal import echo, print_table

app = typer.Typer()


@app.command("convert", epilog="Example: graphnet convert torch/resnet-18 --to onnx --out onnx")
@with_groups
def convert_samples(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of samples, tasks, `all`, or paths. Default: all."),
    ] = None,
    *,
    to: Annotated[
        str,
        typer.Option(help="pt2, onnx, stablehlo, networkx, pyg, kernelbench or fx-text."),
    ],
    out: Annotated[
        Path, typer.Option(help="Directory of the files, which are named after the ids.")
    ] = Path("converted"),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Parallel processes. Default: one per processor.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Time limit for a sample in seconds.")
    ] = 600.0,
    memory_limit: Annotated[
        float, typer.Option(min=0.1, help="Memory limit of a sample in GiB.")
    ] = 8.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per sample.")] = False,
    selection: SelectionOptions,
) -> None:
    """Write graphs as files of `torch.export`, ONNX, StableHLO, networkx, PyG or KernelBench.

    Each file is loaded again in a confined process: the outputs of a program must agree with
    eager's at t = -3, and a data flow graph must have the nodes and edges of the sample. The table
    also lists graphs that cannot be converted, with the reason. Exits with 0 if every graph was
    converted, with 3 if some were not, and with 1 if none was.
    """
    from ..conversion import convert
    from ..isolation import Limits

    limits = Limits(default_timeout_s=timeout, memory_bytes=int(memory_limit * 2**30))
    with (
        stoppable(f"The files so far are in `{out}`"),
        new_output(out, kind="directory"),
        show_count("Converting", "graphs") as count,
    ):
        report = convert(
            names or ["all"],
            to,
            out,
            filters=selection.filters(),
            dataset=selection.dataset,
            jobs=jobs,
            limits=limits,
            on_progress=count,
        )
    if as_json:
        for outcome in report.outcomes:
            echo(json.dumps(outcome.to_dict()))
    else:
        rows = [(item.id, item.status, item.detail) for item in report.outcomes]
        print_table(("sample", "result", "file, or reason"), rows)
        echo(f"\n{report.summary()}.")
    if report.failures:
        raise typer.Exit(PARTLY if len(report.failures) < len(report.outcomes) else 1)
