"""`push_samples`, `push_runs` and `push_rows`: add what a repository does not hold yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..atomic import temporary_directory
from ..errors import PushError, SchemaError, raises_only
from ..sample import Sample
from ..schema import ALL, CONFIGS, Table
from ..schema.tables import GRAPHS
from ..storage.loading import is_repo_id
from .append import append
from .checking import check_tables
from .gather import Place, gather, rows_of_table
from .repository import Repository, hub_errors
from .results import Pushed, Skipped
from .shards import Shards, known_items

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}\Z")

Check = Callable[[Mapping[str, str]], tuple[Mapping[Place, pa.Table], list[Skipped]]]
"""Takes what the repository holds (key to label); returns the tables to push, and what is not."""


@raises_only(PushError)
def push_samples(
    samples: Sample | Iterable[Sample | Mapping[str, Any]],
    repo_id: str,
    config: str | None = None,
    split: str | None = None,
    *,
    create_pr: bool = False,
    token: str | None = None,
    revision: str | None = None,
    skip_validation: str | None = None,
) -> Pushed:
    """Append samples, or rows of them, that the repository does not hold yet, in one commit.

    `config` is by default each sample's task (`truncated` for one with fewer layers than
    published), and `split` that of its family (`analysis.splits.split_of`). Samples are the same
    where their `signature_hash` is, whatever
    they are called; rows are checked, and their hashes computed again. What is new is validated
    (`validate`, with all checks): what fails is left out and named in the result, and the rest
    carries what was found. `skip_validation` is the reason for pushing without, which each row then
    holds. A repository that does not exist is made. `create_pr` opens a pull request instead of
    committing. Each config and split that is touched gets one new shard,
    sorted by `num_ops`; files that are there are never rewritten, so any number of writers may
    push at once. All samples of a push are held in memory: push some thousands at a time.

    Raises:
        DatasetNotFoundError: the repository or revision is missing and is not to be made.
        FormatVersionError: the repository, or a row, is of another format version.
        SchemaError: the repository holds other tables, or a name cannot be a config or split.
        PushError: the Hub refused the push or cannot be reached; the repository is unchanged.

    ```python
    push_samples(read_directory("samples/resnet18"), "org/graphs")
    ```
    """
    check_place(config, split, skip_validation)
    if isinstance(samples, Sample):
        samples = [samples]
    tables, skipped = gather(samples, config, split)
    return _push(
        repo_id,
        tables,
        skipped,
        lambda known: check_tables(tables, known, repo_id, skip_validation),
        table=GRAPHS,
        create_pr=create_pr,
        token=token,
        revision=revision,
    )


@raises_only(PushError)
def push_runs(
    runs: pa.Table | Any,
    repo_id: str,
    *,
    create_pr: bool = False,
    token: str | None = None,
    revision: str | None = None,
) -> Pushed:
    """Append run records to the config `runs` of a repository, in one commit.

    `runs` are a `datasets.Dataset` as `run` returns it, an Arrow table or rows of the `runs` table.
    Records are the same where their `run_id` is. For the rest see `push_samples`.

    Raises:
        DatasetNotFoundError, FormatVersionError, SchemaError, PushError: as `push_samples`.

    ```python
    push_runs(run("graphnet", compiler="inductor"), "org/graphs")
    ```
    """
    return push_rows(runs, repo_id, "runs", create_pr=create_pr, token=token, revision=revision)


@raises_only(PushError)
def push_rows(
    rows: pa.Table | Any,
    repo_id: str,
    config: str,
    split: str = "train",
    *,
    create_pr: bool = False,
    token: str | None = None,
    revision: str | None = None,
) -> Pushed:
    """Append rows of any registered table but `graphs` to one of its configs, in one commit.

    `rows` are a `datasets.Dataset`, an Arrow table or dictionaries with the columns of the config's
    table (`schema.CONFIGS`). Rows are the same where the table's key is. Graphs are checked before
    they are pushed: see `push_samples`.

    Raises:
        DatasetNotFoundError, FormatVersionError, SchemaError, PushError: as `push_samples`;
            SchemaError also for a config that is not registered or holds graphs.

    ```python
    push_rows(records, "org/graphs", "runs")
    ```
    """
    table, tables, skipped = fresh_tables(rows, config, split)
    return _push(
        repo_id,
        tables,
        skipped,
        lambda _: (tables, []),
        table=table,
        create_pr=create_pr,
        token=token,
        revision=revision,
    )


def fresh_tables(
    rows: Any, config: str, split: str
) -> tuple[Table, dict[Place, pa.Table], list[Skipped]]:
    """Return rows of any table but `graphs`, sorted, each once, and what stands there twice.

    Raises:
        SchemaError: the config is not registered or holds graphs, or the rows do not fit.
    """
    table = CONFIGS[config].table if config in CONFIGS else GRAPHS
    if table is GRAPHS:
        known = [name for name, each in CONFIGS.items() if each.table is not GRAPHS]
        raise SchemaError(
            f"`{config}` is not a config of rows other than graphs (there are {', '.join(known)}). "
            "Push graphs with `push_samples`."
        )
    _check_name("split", split)
    arrow = rows_of_table(rows, table)
    first: dict[str, int] = {}
    skipped = []
    labels = arrow[table.label].to_pylist()
    for index, key in enumerate(arrow[table.key].to_pylist()):
        if key in first:
            skipped.append(Skipped(str(labels[index]), "It stands twice in this push."))
        first.setdefault(key, index)
    arrow = arrow.take(pa.array(first.values(), pa.int64()))
    if table.order:
        arrow = arrow.sort_by([(name, "ascending") for name in table.order])
    return table, ({(config, split): arrow} if arrow.num_rows else {}), skipped


def check_place(config: str | None, split: str | None, skip_validation: str | None) -> None:
    """Check what a push of graphs is asked for.

    Raises:
        SchemaError: a name cannot be a config or split, or the reason for no checks is empty.
    """
    for what, name in (("config", config), ("split", split)):
        _check_name(what, name)
    if skip_validation is not None and not skip_validation.strip():
        raise SchemaError(
            "`skip_validation` is the reason why samples are not checked, which their rows record. "
            "Write it, or leave the option out."
        )


def _push(
    repo_id: str,
    tables: Mapping[Place, pa.Table],
    skipped: list[Skipped],
    check: Check,
    *,
    table: Table,
    create_pr: bool,
    token: str | None,
    revision: str | None,
) -> Pushed:
    if not is_repo_id(repo_id):
        raise SchemaError(f"`{repo_id}` is not a repository on the Hub. Write `org/name`.")
    repository = Repository(repo_id, revision, token)
    with hub_errors(repo_id):
        repository.prepare(may_create=not create_pr)
        snapshot = repository.snapshot()
    tables, left_out = check(known_items(snapshot.tables[table.name], table))
    with temporary_directory("graphnet-push-") as directory:
        shards = Shards(repository, tables, table, Path(directory), create_pr)
        num_items = sum(each.num_rows for each in tables.values())
        commit = append(
            repository, shards.make_files, f"Add {num_items} {table.name}", create_pr=create_pr
        )
    return Pushed(
        shards.num_added if commit else 0,
        (*skipped, *left_out, *shards.skipped),
        commit.commit_url if commit else None,
        commit.pr_url if commit else None,
    )


def _check_name(what: str, name: str | None) -> None:
    # A registered config that `all` leaves out is filled by what it is for, not by hand.
    reserved = {name for name, config in CONFIGS.items() if not config.is_in_all}
    taken = {ALL, *reserved} if what == "config" else {ALL}
    if name is not None and (not _NAME.match(name) or name in taken):
        raise SchemaError(
            f"`{name}` cannot be a {what} of graphs. Take letters, digits and underscores, and "
            f"none of {', '.join(sorted(taken))}."
        )
