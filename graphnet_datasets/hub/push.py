"""Pushes of samples, runs and other rows that a repository does not contain yet."""

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
"""Maps the items of the repository (key to label) to the tables to push and skipped rows."""


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
    """Append samples or their rows, except those that the repository has already, in one commit.

    `config` defaults to each sample's task (`truncated` if it has fewer layers than published), and
    `split` to that of its family (`analysis.splits.split_of`). Samples are equal if their
    `signature_hash` is, regardless of their ids; rows are checked, and their hashes recomputed. New
    samples are validated with all checks (`validate`). Those that fail are skipped and listed in
    the result; the others record the results. To push without validation, pass the reason as
    `skip_validation`; the rows record it. A missing repository is created. `create_pr` opens a
    pull request instead of committing. Each affected config and split gets one new shard, sorted by
    `num_ops`. Existing files are never rewritten, so that any number of writers can push
    concurrently. All samples of a push are in memory: push a few thousand at a time.

    Raises:
        DatasetNotFoundError: the repository or revision does not exist and may not be created.
        FormatVersionError: the repository or a row has another format version.
        SchemaError: the repository has other tables, or a name cannot be a config or split.
        PushError: the Hub rejected the push or cannot be reached; the repository is unchanged.

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
        lambda items: check_tables(tables, items, repo_id, skip_validation),
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

    `runs` is a `datasets.Dataset` as returned by `run`, an Arrow table, or rows of the `runs`
    table. Records are equal if their `run_id` is. See `push_samples` for the other arguments.

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
    """Append rows of any registered table except `graphs` to a config, in one commit.

    `rows` is a `datasets.Dataset`, an Arrow table or dictionaries with the columns of the config's
    table (`schema.CONFIGS`). Rows are equal if the table's key is. Push graphs with `push_samples`,
    which checks them.

    Raises:
        DatasetNotFoundError, FormatVersionError, SchemaError, PushError: as `push_samples`;
            SchemaError also if the config is not registered or contains graphs.

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
    """Return distinct sorted rows of any table except `graphs`, and the repeated rows.

    Raises:
        SchemaError: the config is not registered or contains graphs, or the rows are invalid.
    """
    table = CONFIGS[config].table if config in CONFIGS else GRAPHS
    if table is GRAPHS:
        other_configs = [name for name, entry in CONFIGS.items() if entry.table is not GRAPHS]
        raise SchemaError(
            f"`{config}` is not a config of rows other than graphs. Choose one of "
            f"{', '.join(other_configs)}, or push graphs with `push_samples`."
        )
    _check_name("split", split)
    arrow = rows_of_table(rows, table)
    first: dict[str, int] = {}
    skipped = []
    labels = arrow[table.label].to_pylist()
    for index, key in enumerate(arrow[table.key].to_pylist()):
        if key in first:
            skipped.append(Skipped(str(labels[index]), "It occurs twice in this push."))
        first.setdefault(key, index)
    arrow = arrow.take(pa.array(first.values(), pa.int64()))
    if table.order:
        arrow = arrow.sort_by([(name, "ascending") for name in table.order])
    return table, ({(config, split): arrow} if arrow.num_rows else {}), skipped


def check_place(config: str | None, split: str | None, skip_validation: str | None) -> None:
    """Check the config, split and reason of a push of graphs.

    Raises:
        SchemaError: a name cannot be a config or split, or `skip_validation` is blank.
    """
    for kind, name in (("config", config), ("split", split)):
        _check_name(kind, name)
    if skip_validation is not None and not skip_validation.strip():
        raise SchemaError(
            "`skip_validation` must state why samples are not checked, because their rows record "
            "the reason. Write a reason, or omit the option."
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
        raise SchemaError(f"`{repo_id}` is not a repository on the Hub. Use `org/name`.")
    repository = Repository(repo_id, revision, token)
    with hub_errors(repo_id):
        repository.prepare(may_create=not create_pr)
        snapshot = repository.snapshot()
    tables, left_out = check(known_items(snapshot.tables[table.name], table))
    with temporary_directory("graphnet-push-") as directory:
        shards = Shards(repository, tables, table, Path(directory), create_pr)
        num_items = sum(rows.num_rows for rows in tables.values())
        commit = append(
            repository, shards.make_files, f"Add {num_items} {table.name}", create_pr=create_pr
        )
    return Pushed(
        shards.num_added if commit else 0,
        (*skipped, *left_out, *shards.skipped),
        commit.commit_url if commit else None,
        commit.pr_url if commit else None,
    )


def _check_name(kind: str, name: str | None) -> None:
    # Registered configs outside of `all` are filled by their own commands.
    reserved = {name for name, config in CONFIGS.items() if not config.is_in_all}
    reserved_names = {ALL, *reserved} if kind == "config" else {ALL}
    if name is not None and (not _NAME.match(name) or name in reserved_names):
        raise SchemaError(
            f"`{name}` cannot be a {kind} of graphs. Use letters, digits and underscores, but "
            f"none of {', '.join(sorted(reserved_names))}."
        )
