"""`graphnet push`: add graphs, or rows of any other table, to a repository on the Hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DatasetNotFoundError
from ..terminal import counted
from .counting import PARTLY
from .intake import own_config, readable, rows_of, samples_in, table_of
from .terminal import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..hub import Pushed, Skipped
    from ..storage.importing import FolderOutcome

app = typer.Typer()

MAX_REASONS = 20
"""Maximum number of skipped items that are listed without `--verbose`."""


Content = Annotated[
    Path,
    typer.Argument(
        help="A Parquet file, a dataset directory, GraphNet sample directories, or RUNS."
    ),
]
Config = Annotated[str | None, typer.Option(help="The config. Default: each sample's task.")]
Split = Annotated[str | None, typer.Option(help="The split. Default: that of the sample's family.")]


@app.command("push", epilog="Example: graphnet push samples/ my-org/my-graphs")
def push(
    path: Content,
    repository: Annotated[str, typer.Argument(help="`org/name` on the Hub; created if missing.")],
    config: Config = None,
    split: Split = None,
    create_pr: Annotated[
        bool, typer.Option("--create-pr", help="Open a pull request instead of committing.")
    ] = False,
    revision: Annotated[
        str | None, typer.Option(help="A branch. Default: the main branch.")
    ] = None,
    skip_validation: Annotated[
        str | None,
        typer.Option(help="Push without validation; the reason is recorded."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List every item that was left out.")
    ] = False,
) -> None:
    """Add graphs, records of timed runs or other rows to a repository.

    Uses the account of `hf auth login` or HF_TOKEN. Rows that already exist, and graphs that fail a
    check (`graphnet validate`), are left out. Several people may push at once. Exits with 3 if some
    sample directories could not be read and the others were pushed.
    """
    from ..hub import push_rows, push_samples
    from ..schema.tables import GRAPHS

    if not path.exists():
        raise DatasetNotFoundError(f"There is no file or directory `{path}`.")
    where: dict[str, Any] = {"create_pr": create_pr, "revision": revision}
    table = table_of(path)
    if table is not GRAPHS:
        own = own_config(table)
        if config or split or skip_validation:
            raise typer.BadParameter(
                f"{table.rows} go to the config `{own}`, split `train`, without checks"
            )
        _report(push_rows(rows_of(path, table), repository, own, **where), repository, verbose)
        return
    with readable(path) as (source, failures):
        pushed = push_samples(
            samples_in(source), repository, config, split, skip_validation=skip_validation, **where
        )
    _report(pushed, repository, verbose)
    list_unread(failures, verbose)


def _report(pushed: Pushed, repository: str, is_verbose: bool) -> None:
    list_skipped(pushed.skipped, is_verbose)
    echo(f"{pushed.num_added} added to {repository}, {len(pushed.skipped)} left out")
    address = pushed.pull_request_url or pushed.commit_url
    if address:
        echo(address)


def list_skipped(skipped: Sequence[Skipped], is_verbose: bool) -> None:
    """List the skipped items, at most `MAX_REASONS` unless all are requested."""
    left_out = skipped if is_verbose else skipped[:MAX_REASONS]
    for row in left_out:
        echo(f"{row.id}: {row.reason}", err=True)
    if len(left_out) < len(skipped):
        echo(f"… and {len(skipped) - len(left_out)} more (--verbose)", err=True)


def list_unread(failures: Sequence[FolderOutcome], is_verbose: bool) -> None:
    """List the sample directories that were not read, and exit if there are any."""
    for failure in failures if is_verbose else failures[:MAX_REASONS]:
        echo(f"{failure.path}: {failure.reason}", err=True)
    if failures:
        echo(f"{counted(len(failures), 'directory', 'directories')} could not be read", err=True)
        raise typer.Exit(PARTLY)
