"""`submit_samples` and `submit_rows`: add rows to a dataset in a clone of a Git repository."""

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
    """What a submission added: its files, and the text of a pull request.

    `branch` and `commit` are None where nothing was committed.
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
    """Add samples to the dataset in `folder` of a clone, on a branch of their own, in one commit.

    What the dataset holds already is left out, and so is what fails a check, as `push_samples`
    does it; each config and split that is touched gets one new file, named after its content, so
    that submissions made side by side can be merged in any order. The README changes only where a
    config or split begins. Nothing is sent anywhere: push the branch, and open a pull request with
    the summary. `branch` is by default named after the content; without `is_committed` the files
    are written and not committed.

    Raises:
        PushError: there is no clone, something is staged in it, or Git refuses the commit; then the
            clone is as it was.
        UnsafePathError: a path that would be read or written is a symbolic link of the repository.
        SchemaError: a name cannot be a config or split, or the reason for no checks is empty.
    """
    check_place(config, split, skip_validation)
    tables, skipped = gather([samples] if isinstance(samples, Sample) else samples, config, split)
    place = _Place(Clone(clone), folder)
    known = place.known(GRAPHS)
    passed, left_out = check_tables(tables, known, str(clone), skip_validation)
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
    """Add rows of any registered table but `graphs` likewise, records of timed runs for example.

    Raises:
        PushError, SchemaError: as `submit_samples`, and `push_rows`.
    """
    table, tables, skipped = fresh_tables(rows, config, split)
    place = _Place(Clone(clone), folder)
    known = place.known(table)
    fresh = {
        each: leave_out_known(of_place, table.key, table.label, known, str(clone), skipped)
        for each, of_place in tables.items()
    }
    fresh = {each: of_place for each, of_place in fresh.items() if of_place.num_rows}
    return place.submit(table, fresh, skipped, branch, is_committed)


class _Place:
    """The dataset in a folder of a clone, in which no symbolic link is followed."""

    def __init__(self, clone: Clone, folder: str) -> None:
        self.clone = clone
        name = os.path.normpath(folder)
        if name.startswith("..") or Path(name).is_absolute():
            raise PushError(f"`{folder}` leads outside of the clone `{clone.root}`.")
        check_links(clone.root, name)
        self.folder = clone.root / name

    def known(self, table: Table) -> dict[str, str]:
        """Return the rows of the dataset, key to label, without the graphs that it excludes."""
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
        """Write the rows, and commit them."""
        num_added = sum(each.num_rows for each in tables.values())
        title = title_of(table, num_added)
        if not num_added:
            return Submission(0, tuple(skipped), (), title, "", None, None)
        with temporary_directory("graphnet-submit-") as directory:
            made = dict(_written(table, tables, Path(directory)))
            files = {name: file_sha256(path) for name, path in made.items()}
            contents = {name: path.read_bytes() for name, path in made.items()}
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
        """Write new files, and the README where it has to change; remove all of them on an error.

        Raises:
            UnsafePathError: a path is a symbolic link.
        """
        before = self._files()
        names = [*contents]
        was = self._readme()
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
            if was is None or _places(before) != _places([*before, *names]):
                paths.append(self._write(README, self._new_readme(was)))
            yield paths
        except BaseException:
            for path in new:
                path.unlink(missing_ok=True)
            if was is None:
                (self.folder / README).unlink(missing_ok=True)
            elif self._readme() != was:
                self._write(README, was)
            for folder in folders:
                with contextlib.suppress(OSError):  # somebody else put something in it
                    folder.rmdir()
            raise

    def _new_readme(self, was: bytes | None) -> bytes:
        metadata, body = ({}, None) if was is None else split_readme(was, str(self.folder / README))
        return readme_text(self.folder, body, metadata, open_table=self._open).encode()

    def _readme(self) -> bytes | None:
        """Return the README, or None for a new dataset.

        Raises:
            UnsafePathError: it is a symbolic link.
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
        """Return the tables of the dataset, relative to its folder; [] for a new one.

        Raises:
            UnsafePathError: the README, a table or a directory above one is a symbolic link.
        """
        readme = self._readme()
        card = {} if readme is None else parse_card(readme, str(self.folder / README))
        configs, _ = find_configs(card.get("configs"), self._matches, str(self.folder))
        return sorted(
            {name for splits in configs.values() for of in splits.values() for name in of}
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
    """Write a file for each place, and yield its name, which follows from what is in it."""
    for (config, split), rows in tables.items():
        path = write_arrow(rows, directory / config / f"{split}.parquet", table)
        yield f"{config}/{split}-{file_sha256(path)[:16]}.parquet", path


def _folders(paths: Iterable[Path], root: Path) -> list[Path]:
    """Return the directories between some files and a root, the innermost first."""
    found = {each for path in paths for each in path.parents if each.is_relative_to(root)}
    return sorted(found, key=lambda each: -len(each.parts))


def _places(names: Iterable[str]) -> set[tuple[str, str]]:
    pairs = (name.partition("/") for name in names)
    return {(config, file.partition("-")[0]) for config, _, file in pairs}
