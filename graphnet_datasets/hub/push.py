"""`push_samples` and `push_runs`: add what a repository does not hold yet."""

from __future__ import annotations

import hashlib
import re
import secrets
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..analysis.columns import derived_columns
from ..analysis.splits import split_of
from ..errors import FormatVersionError, GraphNetError, SchemaError
from ..layout import ALL, NOT_GRAPHS
from ..sample import Sample
from ..schema import DERIVED_COLUMNS, RUNS_SCHEMA, SCHEMA_VERSION, sample_to_row
from ..table import ROW_GROUP_SIZE, to_arrow, write_arrow
from .append import Files, append
from .card import make_card
from .repository import (
    GRAPH_COLUMNS,
    RUN_COLUMNS,
    RUNS,
    Repository,
    Snapshot,
    errors_of_ours,
    with_place,
)
from .results import Pushed, Skipped

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}\Z")
_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z", re.ASCII)

Place = tuple[str, str]
"""A config and a split."""


def push_samples(
    samples: Sample | Iterable[Sample | Mapping[str, Any]],
    repo_id: str,
    config: str | None = None,
    split: str | None = None,
    *,
    create_pr: bool = False,
    token: str | None = None,
    revision: str | None = None,
) -> Pushed:
    """Append samples, or rows of them, that the repository does not hold yet, in one commit.

    `config` is by default each sample's task, and `split` that of its family
    (`analysis.splits.split_of`). Samples are the same where their `signature_hash` is, whatever
    they are called; rows are checked, and their hashes computed again. A repository that does not
    exist is made, with the branch of this format version. `create_pr` opens a pull request
    instead of committing to the branch. Each config and split that is touched gets one new shard,
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
    tables, skipped = _gather(samples, config, split)
    return _push(
        repo_id,
        tables,
        skipped,
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
    table = _runs_table(runs)
    first: dict[str, int] = {}
    skipped = []
    for index, run_id in enumerate(table["run_id"].to_pylist()):
        if run_id in first:
            skipped.append(Skipped(str(run_id), "It stands twice in this push."))
        first.setdefault(run_id, index)
    table = table.take(pa.array(first.values(), pa.int64()))
    return _push(
        repo_id,
        {(RUNS, "train"): table} if table.num_rows else {},
        skipped,
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
    with tempfile.TemporaryDirectory(prefix="graphnet-push-") as directory:
        shards = _Shards(repository, tables, key, label, Path(directory), create_pr)
        num_items = sum(table.num_rows for table in tables.values())
        commit = append(
            repository, shards.make_files, f"Add {num_items} {what}", create_pr=create_pr
        )
    return Pushed(
        shards.num_added if commit else 0,
        (*skipped, *shards.skipped),
        commit.commit_url if commit else None,
        commit.pr_url if commit else None,
    )


class _Shards:
    """The new shards of a push, made for whatever the repository holds at the moment."""

    def __init__(
        self,
        repository: Repository,
        tables: Mapping[Place, pa.Table],
        key: str,
        label: str,
        directory: Path,
        is_proposal: bool,
    ) -> None:
        self.repository = repository
        self.tables = tables
        self.key, self.label = key, label
        self.directory = directory
        self.is_proposal = is_proposal
        self.num_added = 0
        self.skipped: list[Skipped] = []
        # Once for all attempts: what was uploaded for a commit that was refused is not sent again.
        self.names = {
            place: f"{place[0]}/{place[1]}-{secrets.token_hex(8)}.parquet" for place in tables
        }

    def make_files(self, snapshot: Snapshot) -> Files:
        """Return shards of what the snapshot lacks, with the card; nothing if it lacks nothing."""
        are_runs = self.key == "run_id"
        there = snapshot.runs if are_runs else snapshot.graphs
        known = dict(zip(there[self.key].to_pylist(), there[self.label].to_pylist(), strict=True))
        self.num_added, self.skipped = 0, []
        shards: dict[str, Path] = {}
        added = []
        for place, table in self.tables.items():
            fresh = self._fresh(table, known)
            if not fresh.num_rows:
                continue
            path = self.names[place]
            shards[path] = self._write(fresh, path, are_runs)
            added.append(with_place(fresh.select(RUN_COLUMNS if are_runs else GRAPH_COLUMNS), path))
            self.num_added += fresh.num_rows
        if not shards:
            return {}
        if self.is_proposal and all(self._is_announced(snapshot, path) for path in shards):
            # Pull requests that each changed the card could not be merged one after another.
            return shards
        files = {**snapshot.files, **{path: _sha256(local) for path, local in shards.items()}}
        graphs, runs = snapshot.graphs, snapshot.runs
        whole = pa.concat_tables([there, *added])
        graphs, runs = (graphs, whole) if are_runs else (whole, runs)
        return {
            **shards,
            **make_card(snapshot.readme, self.repository.id, files, graphs, runs),
        }

    def _fresh(self, table: pa.Table, known: Mapping[Any, Any]) -> pa.Table:
        is_fresh = []
        for value, name in zip(
            table[self.key].to_pylist(), table[self.label].to_pylist(), strict=True
        ):
            is_fresh.append(value not in known)
            if value in known:
                same = f" as `{known[value]}`" if known[value] != name else ""
                self.skipped.append(Skipped(name, f"`{self.repository.id}` has it already{same}."))
        return table.filter(pa.array(is_fresh, pa.bool_()))

    def _write(self, table: pa.Table, path: str, are_runs: bool) -> Path:
        local = self.directory / path
        if not are_runs:
            return write_arrow(table, local)
        local.parent.mkdir(parents=True, exist_ok=True)
        with local.open("wb") as file:
            pq.write_table(
                table, file, compression="zstd", write_page_index=True,
                row_group_size=10 * ROW_GROUP_SIZE,
            )  # fmt: skip
        return local

    @staticmethod
    def _is_announced(snapshot: Snapshot, path: str) -> bool:
        """Tell whether the card's patterns take a new shard in, since one like it is there."""
        start = path.rpartition("-")[0]
        return snapshot.readme is not None and any(
            each.rpartition("-")[0] == start for each in snapshot.files
        )


def _gather(
    samples: Iterable[Sample | Mapping[str, Any]], config: str | None, split: str | None
) -> tuple[dict[Place, pa.Table], list[Skipped]]:
    """Return the samples as a sorted table per config and split, and what is left out of them."""
    batches: dict[Place, list[pa.Table]] = {}
    rows_of: dict[Place, list[dict[str, Any]]] = {}
    seen: dict[str, str] = {}
    skipped: list[Skipped] = []
    for item in samples:
        try:
            row = _to_row(item)
        except FormatVersionError:
            raise
        except GraphNetError as error:
            if not isinstance(item, Sample | Mapping):
                raise
            name = item.id if isinstance(item, Sample) else item.get("id")
            skipped.append(Skipped(str(name), str(error)))
            continue
        signature = row["signature_hash"]
        if signature in seen:
            same = f" as `{seen[signature]}`" if seen[signature] != row["id"] else ""
            skipped.append(Skipped(row["id"], f"It stands twice in this push{same}."))
            continue
        seen[signature] = row["id"]
        place = (config or row["task"], split or split_of(row["family"]))
        rows = rows_of.setdefault(place, [])
        rows.append(row)
        if len(rows) == ROW_GROUP_SIZE:
            # Arrow holds a graph in a tenth of the memory of Python's lists and dictionaries.
            batches.setdefault(place, []).append(to_arrow(rows))
            rows.clear()
    for place, rows in rows_of.items():
        batches.setdefault(place, []).append(to_arrow(rows))
    tables = {place: pa.concat_tables(parts) for place, parts in sorted(batches.items())}
    return {place: _by_size(table) for place, table in tables.items()}, skipped


def _by_size(table: pa.Table) -> pa.Table:
    """Sort by `num_ops`, so that a filter on size skips whole row groups."""
    return table.sort_by([("num_ops", "ascending"), ("id", "ascending")])


def _to_row(item: Sample | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(item, Sample):
        return sample_to_row(item, derived_columns(item))
    if not isinstance(item, Mapping):
        raise SchemaError(
            f"A sample or a row of one can be pushed, not `{type(item).__name__}`. Give an "
            "iterable of them."
        )
    sample = Sample.from_row(item)
    # A row may say anything of itself; hashes decide what is a duplicate and are computed here.
    stated = {name: item.get(name) for name in DERIVED_COLUMNS}
    return sample_to_row(sample, {**stated, **derived_columns(sample)})


def _runs_table(runs: Any) -> pa.Table:
    table = runs
    if not isinstance(runs, pa.Table):
        # A `datasets.Dataset` may be a selection of the table behind it; formats apply to rows.
        to_arrow_table: Callable[[], pa.Table] | None = getattr(runs, "with_format", None) and (
            lambda: runs.with_format("arrow")[:]
        )
        table = to_arrow_table() if to_arrow_table else pa.Table.from_pylist(list(runs))
    odd = sorted(set(table.schema.names) ^ set(RUNS_SCHEMA.names)) if table.num_columns else []
    if odd:
        raise SchemaError(
            f"Run records have other columns than the `runs` table: {', '.join(odd)} missing or "
            "unknown."
        )
    if not table.num_rows:
        return RUNS_SCHEMA.empty_table()
    for version in table["schema_version"].unique().to_pylist():
        if version != SCHEMA_VERSION:
            raise FormatVersionError(
                f"The run records are of format version {version}; this library writes "
                f"{SCHEMA_VERSION}. Push them with the release of `graphnet-datasets` that made "
                "them."
            )
    try:
        return table.select(RUNS_SCHEMA.names).cast(RUNS_SCHEMA)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaError(f"A run record does not fit the `runs` table: {error}") from error


def _check_name(what: str, name: str | None) -> None:
    taken = {ALL, *NOT_GRAPHS} if what == "config" else {ALL}
    if name is not None and (not _NAME.match(name) or name in taken):
        raise SchemaError(
            f"`{name}` cannot be a {what} of graphs. Take letters, digits and underscores, and "
            f"none of {', '.join(sorted(taken))}."
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
