"""`graphnet submit`: add rows to a dataset in a clone of a Git repository, for a pull request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import DatasetNotFoundError
from .intake import own_config, readable, rows_of, samples_in, table_of
from .push import Config, Content, Split, list_skipped, list_unread
from .terminal import echo

app = typer.Typer()


@app.command("submit", epilog="Example: graphnet submit mine.parquet ../graphs --summary pr.md")
def submit(
    path: Content,
    clone: Annotated[Path, typer.Argument(help="A Git clone of the repository with the dataset.")],
    folder: Annotated[str, typer.Option(help="The dataset's directory in the clone.")] = ".",
    config: Config = None,
    split: Split = None,
    branch: Annotated[
        str | None, typer.Option(help="The new branch; by default named after the content.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(help="A file for the description of the pull request.")
    ] = None,
    no_commit: Annotated[
        bool, typer.Option("--no-commit", help="Write the files without a commit.")
    ] = False,
    skip_validation: Annotated[
        str | None,
        typer.Option(help="Add without validation; the reason is recorded."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List every item that was left out.")
    ] = False,
) -> None:
    """Add graphs or records to a dataset in a Git clone, as one commit on a new branch.

    Rows that already exist, and graphs that fail a check (`graphnet validate`), are left out.
    Nothing is uploaded: push the branch and open a pull request with the summary.
    """
    from ..atomic import write_text
    from ..hub import submit_rows, submit_samples
    from ..schema.tables import GRAPHS

    if not path.exists():
        raise DatasetNotFoundError(f"There is no file or directory `{path}`.")
    where: dict[str, Any] = {"folder": folder, "branch": branch, "is_committed": not no_commit}
    table = table_of(path)
    failures = []
    if table is GRAPHS:
        with readable(path) as (source, failures):
            done = submit_samples(
                samples_in(source), clone, config, split, skip_validation=skip_validation, **where
            )
    else:
        own = own_config(table)
        if config or split or skip_validation:
            raise typer.BadParameter(
                f"{table.rows} go to the config `{own}`, split `train`, without checks"
            )
        done = submit_rows(rows_of(path, table), clone, own, **where)
    list_skipped(done.skipped, verbose)
    echo(f"{done.num_added} added to {clone}, {len(done.skipped)} left out")
    for file in done.files:
        echo(str(file))
    if summary is not None and done.num_added:
        write_text(summary, done.summary)
    if done.branch is not None:
        echo(f"On the branch {done.branch}, commit {done.commit}. Push it: git push -u origin HEAD")
    list_unread(failures, verbose)
