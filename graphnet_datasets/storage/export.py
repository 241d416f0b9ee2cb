"""`export_dataset`, a dataset as a directory that plain `datasets` reads; `export_directories`."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ..atomic import new_directory, temporary_directory
from ..errors import DatasetExistsError, GraphNetError, SchemaError, raises_only
from ..paths import check_name, place_inside
from ..schema import sample_from_row
from .layout import read_layout, write_readme
from .loading import DEFAULT_NAME, REVISION, load_dataset, locate, not_on_hub
from .remote import Url, download, is_empty, upload


@raises_only(SchemaError)
def export_dataset(
    directory: str | os.PathLike[str],
    name: str | os.PathLike[str] = DEFAULT_NAME,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Path | Url:
    """Write the dataset `name` as a directory and return where it is.

    Beside a directory `graphnet`, `datasets.load_dataset("graphnet", "cv")` loads it. The directory
    appears under its name only when it is complete. It may also be a URL of a file system that
    `fsspec` knows (`s3://bucket/graphs`), where the README comes last; `storage_options` are for
    URLs, here and in `name`.

    Raises:
        DatasetNotFoundError: no dataset has that name.
        DatasetExistsError: the directory exists and is not empty.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     copy = export_dataset(f"{parent}/graphnet")
    ...     (Path(copy) / "README.md").is_file()
    True
    """
    if isinstance(directory, str) and "://" in directory and not directory.startswith("file://"):
        there = Url(directory, dict(storage_options or {}))
        if not is_empty(there):
            raise DatasetExistsError(f"`{there}` exists. Choose another place, or delete it.")
        with temporary_directory() as temporary:
            upload(_fetch(name, Path(temporary) / "copy", storage_options), there)
        return there
    target = _local(directory)
    _check_free(target)
    with new_directory(target) as place:
        _fetch(name, place, storage_options)
    return target


def _local(directory: str | os.PathLike[str]) -> Path:
    text = os.fspath(directory)
    return Path(unquote(urlsplit(text).path) if text.startswith("file://") else text)


def _fetch(
    name: str | os.PathLike[str], copy: Path, storage_options: Mapping[str, Any] | None
) -> Path:
    """Copy a dataset from wherever it is to a new local directory, and return that."""
    place = locate(name, storage_options)
    if isinstance(place, Path):
        _copy(place, copy)
    elif isinstance(place, Url):
        download(place, copy)
    else:
        _download(place, copy)
    return copy


@dataclasses.dataclass(frozen=True)
class ExportedDirectories:
    """How many sample directories were written, and id and reason of each that was not."""

    num_written: int
    failures: tuple[tuple[str, str], ...]


@raises_only(SchemaError)
def export_directories(
    directory: str | os.PathLike[str],
    name: str | os.PathLike[str] = DEFAULT_NAME,
    *,
    on_progress: Callable[[int, int | None], None] | None = None,
) -> ExportedDirectories:
    """Write each graph of a dataset, of all its splits, as a GraphNet directory named by its id.

    Where an id cannot be a name, or another graph has it too, the directory is called otherwise
    (`SampleTree`); the id itself stands in the directory. `on_progress` is told how many graphs are
    done; the second number, how many there are, is None since a stream does not say. The directory
    appears under its name when all are written.

    Raises:
        DatasetNotFoundError: no dataset has that name.
        DatasetExistsError: the directory exists and is not empty.

    >>> import tempfile
    >>> from graphnet_datasets.storage.table import write_table
    >>> from graphnet_datasets.sample import Input, Sample, Value
    >>> identity = Sample("a/identity", "torch", "other",
    ...     inputs=(Input("input", Value("float32", (2,))),), ops=(), outputs=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = write_table([identity], f"{folder}/a.parquet")
    ...     export_directories(f"{folder}/tree", table).num_written
    1
    """
    from ..directory import SampleTree

    target = Path(directory)
    _check_free(target)
    splits: Any = load_dataset(name, split=None, streaming=True)
    failures: list[tuple[str, str]] = []
    num_written = 0
    with new_directory(target) as place:
        tree = SampleTree(place)
        for row in (row for split in splits.values() for row in split):
            try:
                tree.write(sample_from_row(row))
                num_written += 1
            except GraphNetError as error:
                failures.append((str(row["id"]), str(error)))
            if on_progress is not None:
                on_progress(num_written + len(failures), None)
    return ExportedDirectories(num_written, tuple(failures))


def _check_free(target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DatasetExistsError(f"`{target}` exists. Choose another directory, or delete it.")


def _copy(source: Path, copy: Path) -> None:
    splits_by_config = read_layout(source).configs
    files = {
        path for splits in splits_by_config.values() for paths in splits.values() for path in paths
    }
    for path in sorted(files):
        place = place_inside(copy, path.relative_to(source).as_posix(), str(source))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    if (source / "README.md").is_file():
        shutil.copyfile(source / "README.md", copy / "README.md")
    else:
        write_readme(copy)


def _download(repo_id: str, copy: Path) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    patterns = ["README.md", "*/*.parquet"]
    for revision in (REVISION, None):
        try:
            _check_names(repo_id, revision)
            cached = snapshot_download(
                repo_id, repo_type="dataset", revision=revision, allow_patterns=patterns
            )
        except RevisionNotFoundError:
            continue
        except RepositoryNotFoundError as error:
            raise not_on_hub(repo_id) from error
        # The cache holds links to its blobs; a copy holds the files.
        shutil.copytree(cached, copy)
        return


def _check_names(repo_id: str, revision: str | None) -> None:
    """Check the names that a repository lists before its client writes files under them."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        # The base of what its HTTP library raises, whichever that is in this release of it.
        HTTPError,  # pyright: ignore[reportPrivateImportUsage]
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        found = HfApi().dataset_info(repo_id, revision=revision)
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise
    except (HTTPError, OfflineModeIsEnabled, LocalEntryNotFoundError, ConnectionError):
        return  # the client will take what it has cached, or say the same
    for each in found.siblings or ():
        check_name(each.rfilename, repo_id)
