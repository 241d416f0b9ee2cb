"""A dataset repository during a push: its branch, its shards and their scalar columns.

Only the footer and a few scalar columns of a shard are fetched, by range requests; the graphs
themselves are not downloaded.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..decoding import read_text
from ..errors import FormatVersionError, GraphNetError, PushError, SchemaError
from ..schema import SCHEMA_VERSION, TABLES, Table
from ..schema.tables import table_of_file
from ..storage.loading import REVISION, not_on_hub
from ..version import __version__

if TYPE_CHECKING:
    from huggingface_hub import HfApi, HfFileSystem

KIND = "dataset"
MAIN = "main"

NUM_READERS = 8
"""Number of shards read concurrently; each takes three or four requests, mostly latency."""
BLOCK_BYTES = 1 << 16
"""Minimum size of a request: that of the first read of a Parquet footer."""

_SHARD = re.compile(r"[A-Za-z0-9_]+/[A-Za-z0-9_]+-[^/]*\.parquet\Z")
_VERSION_BRANCH = re.compile(r"v(\d{1,6})\Z")


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A repository at one commit: its table files with sha256, and their scalar columns.

    `tables` contains the columns `scalars` of every registered table by name, about a hundred bytes
    per row, with the config and split of each row.
    """

    commit: str
    files: dict[str, str]
    tables: dict[str, pa.Table]
    readme: str | None


class Repository:
    """A dataset repository on the Hub at the branch that `prepare` selects.

    Raises:
        DatasetNotFoundError: the repository or branch does not exist and may not be created.
        FormatVersionError: the repository has another format version.
    """

    def __init__(self, repo_id: str, revision: str | None, token: str | None) -> None:
        from huggingface_hub import HfApi

        self.id = repo_id
        self.revision = MAIN
        self._requested_revision = revision
        self.api: HfApi = HfApi(
            token=token, library_name="graphnet_datasets", library_version=__version__
        )
        self.token = token
        self._read: dict[str, pa.Table] = {}

    def prepare(self, *, may_create: bool) -> None:
        """Create a missing repository, and select the branch to push to.

        This is the main branch, which users and plain `datasets` see, while it has this format
        version. When a repository moves on to a newer version, a branch named after this version
        remains for its readers, and is selected.
        """
        from huggingface_hub.errors import RepositoryNotFoundError

        try:
            branches = self._branches()
        except RepositoryNotFoundError:
            if not may_create:
                raise not_on_hub(self.id) from None
            self.api.create_repo(self.id, repo_type=KIND, exist_ok=True)
            branches = self._branches()
        if self._requested_revision is not None:
            if self._requested_revision not in branches:
                raise not_on_hub(self.id, self._requested_revision)
            self.revision = self._requested_revision
        elif REVISION in branches:
            self.revision = REVISION
        else:
            self.revision = MAIN
            # Raises if the main branch has tables of another version or of another kind.
            holds_tables = bool(self._snapshot(branches[MAIN]).files)
            versions = [
                int(match[1]) for name in branches if (match := _VERSION_BRANCH.match(name))
            ]
            if versions and not holds_tables:
                raise _other_version(self.id, max(versions))

    def snapshot(self) -> Snapshot:
        """Return the repository at the head of the branch; shards are read only once.

        Raises:
            FormatVersionError, SchemaError: the tables do not have this format version.
        """
        commit = self.api.dataset_info(self.id, revision=self.revision).sha
        if commit is None:
            raise PushError(
                f"The Hub reports no commit of `{self.id}` at `{self.revision}`. Check the "
                "revision."
            )
        return self._snapshot(commit)

    def _branches(self) -> dict[str, str]:
        refs = self.api.list_repo_refs(self.id, repo_type=KIND)
        return {branch.name: branch.target_commit for branch in refs.branches}

    def _snapshot(self, commit: str) -> Snapshot:
        from huggingface_hub import HfFileSystem
        from huggingface_hub.hf_api import RepoFile

        entries = self.api.list_repo_tree(self.id, recursive=True, revision=commit, repo_type=KIND)
        files_by_path = {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}
        files = {
            path: entry.lfs.sha256 if entry.lfs else entry.blob_id
            for path, entry in sorted(files_by_path.items())
            if _SHARD.match(path)
        }
        # Cached instances would keep the listing of an older commit.
        system = HfFileSystem(token=self.token, skip_instance_cache=True)
        unread = [path for path, sha in files.items() if sha not in self._read]

        def read(path: str) -> pa.Table:
            return self._read_columns(system, commit, path)

        with ThreadPoolExecutor(NUM_READERS) as pool:
            for path, table in zip(unread, pool.map(read, unread), strict=True):
                self._read[files[path]] = table
        return Snapshot(
            commit,
            files,
            {name: self._concatenate(files, table) for name, table in TABLES.items()},
            self._readme(commit) if "README.md" in files_by_path else None,
        )

    def _readme(self, commit: str) -> str:
        return read_text(
            self.api.hf_hub_download(self.id, "README.md", repo_type=KIND, revision=commit)
        )

    def _concatenate(self, files: dict[str, str], table: Table) -> pa.Table:
        parts = [
            with_place(self._read[sha], path)
            for path, sha in files.items()
            if table_of_file(path) is table
        ]
        return pa.concat_tables([with_place(table.empty_scalars(), "none/none-0"), *parts])

    def _read_columns(self, system: HfFileSystem, commit: str, path: str) -> pa.Table:
        expected = table_of_file(path)
        columns = expected.scalars
        place = f"datasets/{self.id}@{commit}/{path}"
        try:
            with system.open(place, "rb", block_size=BLOCK_BYTES) as file:
                parquet = pq.ParquetFile(file)
                self._check(parquet.schema_arrow, path, columns)
                table = parquet.read(columns=list(columns))
        except pa.ArrowInvalid as error:
            raise SchemaError(
                f"`{path}` in `{self.id}` is not a complete Parquet file: "
                f"{str(error).rstrip('.')}. Delete it from the repository, or write it again."
            ) from error
        for version in table["schema_version"].unique().to_pylist():
            if version != SCHEMA_VERSION:
                raise _other_version(self.id, version)
        return table.cast(expected.empty_scalars().schema)

    def _check(self, schema: pa.Schema, path: str, columns: Sequence[str]) -> None:
        missing = [name for name in columns if name not in schema.names]
        if missing:
            raise SchemaError(
                f"`{path}` in `{self.id}` has no column `{missing[0]}`: it is not a table of "
                "GraphNet Datasets. Push to another repository."
            )


def with_place(table: pa.Table, path: str) -> pa.Table:
    """Return the scalar columns of a shard with config and split columns added."""
    config, _, file = path.partition("/")
    for name, value in (("config", config), ("split", file.partition("-")[0])):
        table = table.append_column(name, pa.repeat(pa.scalar(value), table.num_rows))
    return table


@contextlib.contextmanager
def hub_errors(repo_id: str) -> Iterator[None]:
    """Convert errors of the Hub, the network or the disk to a `PushError`."""
    from huggingface_hub.errors import (
        HfHubHTTPError,
        # The base class of errors of the HTTP library, which depends on the release.
        HTTPError,  # pyright: ignore[reportPrivateImportUsage]
    )

    try:
        yield
    except GraphNetError:
        raise
    except (HTTPError, OSError, RuntimeError) as error:
        answer = getattr(error, "response", None) if isinstance(error, HfHubHTTPError) else None
        status = getattr(answer, "status_code", None)
        cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ else error
        reason = next(iter(str(cause).strip().splitlines()), type(cause).__name__).rstrip(".")
        advice = "Push again; items that were pushed already are skipped."
        if status in (401, 403):
            advice = "Log in with a token with write access (`hf auth login`), and push again."
        raise PushError(f"The push to `{repo_id}` failed: {reason}. {advice}") from error


def _other_version(repo_id: str, version: Any) -> FormatVersionError:
    start = f"`{repo_id}` has format version {version}; this library writes {SCHEMA_VERSION}. "
    if isinstance(version, int) and version > SCHEMA_VERSION:
        return FormatVersionError(
            f"{start}Install the release that writes version {version} (`pip install --upgrade "
            "graphnet-datasets`), or push to another repository."
        )
    return FormatVersionError(
        f"{start}To convert it, run `graphnet export samples --dataset {repo_id} --format "
        f"graphnet` with the release that reads version {version}, then `graphnet push samples "
        "org/new-name` with this one."
    )
