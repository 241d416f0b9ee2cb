"""`graphnet records`: conversion and repeated checks of tuning records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...cli.counting import KEPT, show_count, stoppable
from ...cli.disk import new_output
from ...cli.terminal import echo
from ...errors import TuningError

TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code", help="Accept workloads that the verifier rejects; review them first."
    ),
]

app = typer.Typer()
group = typer.Typer(
    no_args_is_help=True,
    help="Tuning records: checks, databases of TVM, features for cost models.",
    epilog="Example: graphnet records export tuned/ --out database",
)
app.add_typer(group, name="records")


@group.command(
    "export", epilog="Example: graphnet records export tuned/ --out features.npz --splits-by family"
)
def export_records(
    dataset: Annotated[
        str, typer.Argument(help="A dataset of records: a directory, a name, a repository.")
    ],
    *,
    out: Annotated[
        Path, typer.Option(help="An `.npz` file of features, or a directory for TVM's database.")
    ],
    splits_by: Annotated[
        str,
        typer.Option(help="Unit of the train/test split: family, task or random rows."),
    ] = "family",
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Write features and times for training cost models, or a JSONDatabase of TVM.

    An `.npz` file needs no TVM. Its arrays cover all records, and their split stays the same when
    records are added. A directory becomes a TVM `work_dir` with the correct records.
    """
    from ..exporting import export_features, export_tvm_database
    from ..records import read_records

    with new_output(out):
        if out.suffix == ".npz":
            if out.exists():
                raise TuningError(f"`{out}` exists. Choose another file, or delete it.")
            records = read_records(dataset)
            if records.skipped:
                echo(records.skipped_text, err=True)
            export_features(records, out, splits_by=splits_by)
            count = sum(measurement.features is not None for measurement in records.measurements)
        else:
            count = export_tvm_database(dataset, out, trust_remote_code=trust_remote_code)
    echo(f"{count} records written to {out}")


@group.command("check", epilog="Example: graphnet records check tuned/ --out checks.jsonl")
def check_records(
    dataset: Annotated[
        str, typer.Argument(help="A dataset of records: a directory, a name, a repository.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="The file of JSON lines to append to.")],
    task: Annotated[
        list[str] | None,
        typer.Option(help="Only this task: its id or first characters (repeatable)."),
    ] = None,
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Build and check the candidates of records again, without timing them.

    Every result is a JSON line; repeat the command after an interruption. Exits with 1 if a record
    that was correct is not correct now.
    """
    from ..rechecking import recheck_records, summary

    with stoppable(KEPT), new_output(out), show_count("Checking", "records") as count:
        results = recheck_records(
            dataset,
            out,
            tasks=task or (),
            trust_remote_code=trust_remote_code,
            on_record=lambda _, num_done, total: count(num_done, total),
        )
    echo(summary(results))
    if any(result.recorded == "ok" != result.status for result in results):
        raise typer.Exit(1)


@group.command("import", epilog="Example: graphnet records import database --out theirs")
def import_records(
    database: Annotated[Path, typer.Argument(help="The directory of a JSONDatabase of TVM.")],
    *,
    out: Annotated[Path, typer.Option(help="The dataset directory to write.")],
    trust_remote_code: TrustRemoteCode = False,
) -> None:
    """Read a JSONDatabase of TVM as a dataset of tasks and records.

    Its files are parsed in a separate process. Lines that cannot be read are counted.
    """
    from ..exporting import import_tvm_database

    with new_output(out):
        skipped = import_tvm_database(database, out, trust_remote_code=trust_remote_code)
    for reason, count in skipped.items():
        echo(f"left out: {reason} ({count})", err=True)
    echo(f"Written to {out}")
