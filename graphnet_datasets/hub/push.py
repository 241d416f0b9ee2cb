"""`push_samples` and `push_runs`: add what a repository does not hold yet."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import SchemaError
from ..sample import Sample
from ..storage.layout import ALL, EXCLUDED, NOT_GRAPHS
from .append import append
from .checking import check_tables
from .gather import Place, gather, runs_table
from .repository import RUNS, Repository, errors_of_ours
from .results import Pushed, Skipped
from .shards import Shards, known_items

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}\Z")
_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z", re.ASCII)

Check = Callable[[Mapping[str, str]], tuple[Mapping[Place, pa.Table], list[Skipped]]]
"""Takes what the repository holds (key to label); returns the tables to push, and what is not."""


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

    `config` is by default each sample's task, and `split` that of its family
    (`analysis.splits.split_of`). Samples are the same where their `signature_hash` is, whatever
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
    for what, name in (("config", config), ("split", split)):
        _check_name(what, name)
    if isinstance(samples, Sample):
        samples = [samples]
    if skip_validation is not None and not skip_validation.strip():
        raise SchemaError(
            "`skip_validation` is the reason why samples are not checked, which their rows record. "
            "Write it, or leave the option out."
        )
    tables, skipped = gather(samples, config, split)
    return _push(
        repo_id,
        tables,
        skipped,
        lambda known: check_tables(tables, known, repo_id, skip_validation),
        key="signature_hash",
        label="id",
        what="graphs",
        create_pr=create_pr,
        token=token,
        revision=revision,
    )


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
    table = runs_table(runs)
    first: dict[str, int] = {}
    skipped = []
    for index, run_id in enumerate(table["run_id"].to_pylist()):
        if run_id in first:
            skipped.append(Skipped(str(run_id), "It stands twice in this push."))
        first.setdefault(run_id, index)
    table = table.take(pa.array(first.values(), pa.int64()))
    tables: dict[Place, pa.Table] = {(RUNS, "train"): table} if table.num_rows else {}
    return _push(
        repo_id,
        tables,
        skipped,
        lambda _: (tables, []),
        key="run_id",
        label="run_id",
        what="runs",
        create_pr=create_pr,
        token=token,
        revision=revision,
    )


def _push(
    repo_id: str,
    tables: Mapping[Place, pa.Table],
    skipped: list[Skipped],
    check: Check,
    *,
    key: str,
    label: str,
    what: str,
    create_pr: bool,
    token: str | None,
    revision: str | None,
) -> Pushed:
    if not _REPO_ID.match(repo_id):
        raise SchemaError(f"`{repo_id}` is not a repository on the Hub. Write `org/name`.")
    repository = Repository(repo_id, revision, token)
    with errors_of_ours(repo_id):
        repository.prepare(may_create=not create_pr)
        snapshot = repository.snapshot()
    there = snapshot.runs if what == "runs" else snapshot.graphs
    tables, left_out = check(known_items(there, key, label))
    with tempfile.TemporaryDirectory(prefix="graphnet-push-") as directory:
        shards = Shards(repository, tables, key, label, Path(directory), create_pr)
        num_items = sum(table.num_rows for table in tables.values())
        commit = append(
            repository, shards.make_files, f"Add {num_items} {what}", create_pr=create_pr
        )
    return Pushed(
        shards.num_added if commit else 0,
        (*skipped, *left_out, *shards.skipped),
        commit.commit_url if commit else None,
        commit.pr_url if commit else None,
    )


def _check_name(what: str, name: str | None) -> None:
    taken = {ALL, EXCLUDED, *NOT_GRAPHS} if what == "config" else {ALL}
    if name is not None and (not _NAME.match(name) or name in taken):
        raise SchemaError(
            f"`{name}` cannot be a {what} of graphs. Take letters, digits and underscores, and "
            f"none of {', '.join(sorted(taken))}."
        )
