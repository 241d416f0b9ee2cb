"""Additions of rows to a dataset in a Git clone, for a pull request."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from ..atomic import file_sha256, temporary_directory, write_inside
from ..errors import PushError, raises_only
from ..paths import check_links, open_file
from ..sample import Sample
from ..schema import EXCLUDED, Table
from ..schema.tables import GRAPHS, table_of_file
from ..storage.layout import find_configs, parse_card, readme_text, split_readme
from ..storage.table import read_open_table, write_arrow
from .checking import check_tables, leave_out_known
from .gather import Place, gather
from .git import Clone
from .push import check_place, fresh_tables
from .results import Skipped
from .summaries import summarise, title_of

README = "README.md"


@dataclasses.dataclass(frozen=True, slots=True)
class Submission:
    """The result of a submission: its files, and the text for a pull request.

    Without a commit, `branch` and `commit` are None.
    """

    num_added: int
    skipped: tuple[Skipped, ...]
    files: tuple[Path, ...]
    title: str
    summary: str
    branch: str | None
    commit: str | None


@raises_only(PushError)
def submit_samples(
    samples: Sample | Iterable[Sample | Mapping[str, Any]],
    clone: str | os.PathLike[str],
    config: str | None = None,
    split: str | None = None,
    *,
    folder: str = ".",
    branch: str | None = None,
    is_committed: bool = True,
    skip_validation: str | None = None,
) -> Submission:
    """Add samples to the dataset in `folder` of a clone, on a new branch, in one commit.

    Samples that the dataset has already or that fail a check are skipped, as in `push_samples`.
    Each affected config and split gets one new file, named after its content, so that parallel
    submissions can be merged in any order. The README changes only if a config or split is new.
    Nothing is uploaded: push the branch, and open a pull request with the summary. `branch`
    defaults to a name derived from the content. Without `is_committed` the files are written but
    not committed.

    Raises:
        PushError: the path is not a clone, changes are staged in it, or Git rejects the commit; the
            clone is restored.
        UnsafePathError: a path to be read or written is a symbolic link of the repository.
        SchemaError: a name cannot be a config or split, or `skip_validation` is blank.
    """
    check_place(config, split, skip_validation)
    tables, skipped = gather([samples] if isinstance(samples, Sample) else samples, config, split)
    place = _Place(Clone(clone), folder)
    known_items = place.known(GRAPHS)
    passed, left_out = check_tables(tables, known_items, str(clone), skip_validation)
    return place.submit(GRAPHS, passed, [*skipped, *left_out], branch, is_committed)


@raises_only(PushError)
def submit_rows(
    rows: pa.Table | Any,
    clone: str | os.PathLike[str],
    config: str,
    split: str = "train",
    *,
    folder: str = ".",
    branch: str | None = None,
    is_committed: bool = True,
) -> Submission:
    """Add rows of any registered table except `graphs`, such as run records.

    Raises:
        PushError, SchemaError: as `submit_samples`, and `push_rows`.
    """
    table, tables, skipped = fresh_tables(rows, config, split)
    place = _Place(Clone(clone), folder)
    known_items = place.known(table)
    fresh = {
        place_key: leave_out_known(
            place_rows, table.key, table.label, known_items, str(clone), skipped
        )
        for place_key, place_rows in tables.items()
    }
    fresh = {
        place_key: place_rows for place_key, place_rows in fresh.items() if place_rows.num_rows
    }
    return place.submit(table, fresh, skipped, branch, is_committed)


class _Place:
    """The dataset in a folder of a clone; symbolic links are not followed."""

    def __init__(self, clone: Clone, folder: str) -> None:
        self.clone = clone
        name = os.path.normpath(folder)
        if name.startswith("..") or Path(name).is_absolute():
            raise PushError(
                f"`{folder}` is outside the clone `{clone.root}`. Choose a folder inside it."
            )
        check_links(clone.root, name)
        self.folder = clone.root / name

    def known(self, table: Table) -> dict[str, str]:
        """Return the items of the dataset, key to label, without excluded graphs."""
        labels: dict[str, str] = {}
        for name in self._files():
            if table_of_file(name) is table and not name.startswith(f"{EXCLUDED}/"):
                columns = [*dict.fromkeys((table.key, table.label))]
                with self._open(name) as file:
                    rows = read_open_table(file, self.folder / name, columns)
                pairs = zip(rows[table.key].to_pylist(), rows[table.label].to_pylist(), strict=True)
                labels |= dict(pairs)
        return labels

    def submit(
        self,
        table: Table,
        tables: Mapping[Place, pa.Table],
        skipped: list[Skipped],
        branch: str | None,
        is_committed: bool,
    ) -> Submission:
        """Write the rows and commit them."""
        num_added = sum(rows.num_rows for rows in tables.values())
        title = title_of(table, num_added)
        if not num_added:
            return Submission(0, tuple(skipped), (), title, "", None, None)
        with temporary_directory("graphnet-submit-") as directory:
            written_files = dict(_written(table, tables, Path(directory)))
            files = {name: file_sha256(path) for name, path in written_files.items()}
            contents = {name: path.read_bytes() for name, path in written_files.items()}
        summary = summarise(table, tables, files, skipped)
        digest = hashlib.sha256("".join(sorted(files.values())).encode()).hexdigest()[:12]
        name = branch or f"submit-{digest}"
        commit = None
        with contextlib.ExitStack() as stack:
            if is_committed:
                self.clone.check_index()
                stack.enter_context(self.clone.branch(name))
            paths = stack.enter_context(self._added(contents))
            if is_committed:
                commit = self.clone.commit(paths, f"{title}\n\n{summary}")
        branched = name if is_committed else None
        return Submission(num_added, tuple(skipped), tuple(paths), title, summary, branched, commit)

    @contextlib.contextmanager
    def _added(self, contents: Mapping[str, bytes]) -> Iterator[list[Path]]:
        """Write new files, and a changed README; undo all changes on an error.

        Raises:
            UnsafePathError: a path is a symbolic link.
        """
        before = self._files()
        names = [*contents]
        old_readme = self._readme()
        for name in names:
            check_links(self.clone.root, self._from_root(name))
        new = [self.folder / name for name in names if not (self.folder / name).exists()]
        folders = [
            folder
            for folder in _folders([self.folder / name for name in names], self.clone.root)
            if not folder.exists()
        ]
        try:
            paths = [self._write(name, content) for name, content in contents.items()]
            if old_readme is None or _places(before) != _places([*before, *names]):
                paths.append(self._write(README, self._new_readme(old_readme)))
            yield paths
        except BaseException:
            for path in new:
                path.unlink(missing_ok=True)
            if old_readme is None:
                (self.folder / README).unlink(missing_ok=True)
            elif self._readme() != old_readme:
                self._write(README, old_readme)
            for folder in folders:
                with contextlib.suppress(OSError):  # the folder has other files
                    folder.rmdir()
            raise

    def _new_readme(self, old_readme: bytes | None) -> bytes:
        metadata, body = (
            ({}, None)
            if old_readme is None
            else split_readme(old_readme, str(self.folder / README))
        )
        return readme_text(self.folder, body, metadata, open_table=self._open).encode()

    def _readme(self) -> bytes | None:
        """Return the README, or None for a new dataset.

        Raises:
            UnsafePathError: the README is a symbolic link.
        """
        try:
            with self._open(README) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _from_root(self, name: str) -> str:
        return (self.folder / name).relative_to(self.clone.root).as_posix()

    def _open(self, name: str) -> contextlib.AbstractContextManager[BinaryIO]:
        return open_file(self.clone.root, self._from_root(name))

    def _write(self, name: str, content: bytes) -> Path:
        return write_inside(self.clone.root, self._from_root(name), content)

    def _files(self) -> list[str]:
        """Return the tables of the dataset, relative to its folder; empty for a new dataset.

        Raises:
            UnsafePathError: the README, a table or a directory above one is a symbolic link.
        """
        readme = self._readme()
        card = {} if readme is None else parse_card(readme, str(self.folder / README))
        configs, _ = find_configs(card.get("configs"), self._matches, str(self.folder))
        return sorted(
            {name for splits in configs.values() for names in splits.values() for name in names}
        )

    def _matches(self, pattern: str) -> Iterator[str]:
        """Yield the files of the dataset that match a pattern, relative to its folder."""
        for path in self.folder.glob(pattern):
            name = path.relative_to(self.folder).as_posix()
            check_links(self.clone.root, self._from_root(name))
            yield name


def _written(
    table: Table, tables: Mapping[Place, pa.Table], directory: Path
) -> Iterator[tuple[str, Path]]:
    """Write a file per config and split, and yield its name, derived from its content."""
    for (config, split), rows in tables.items():
        path = write_arrow(rows, directory / config / f"{split}.parquet", table)
        yield f"{config}/{split}-{file_sha256(path)[:16]}.parquet", path


def _folders(paths: Iterable[Path], root: Path) -> list[Path]:
    """Return the directories between files and a root, innermost first."""
    folders = {parent for path in paths for parent in path.parents if parent.is_relative_to(root)}
    return sorted(folders, key=lambda folder: -len(folder.parts))


def _places(names: Iterable[str]) -> set[tuple[str, str]]:
    pairs = (name.partition("/") for name in names)
    return {(config, file.partition("-")[0]) for config, _, file in pairs}
