"""Export of a dataset as a directory for plain `datasets`, or as GraphNet directories."""

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
    """Write the dataset `name` as a directory and return its location.

    `datasets.load_dataset("graphnet", "cv")` loads the directory `graphnet` without this library.
    The directory appears under its name when it is complete. `directory` may be a URL of a file
    system supported by `fsspec` (`s3://bucket/graphs`); its README is written last.
    `storage_options` apply to URLs in `directory` and `name`.

    Raises:
        DatasetNotFoundError: the dataset does not exist.
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
    """Copy a dataset from any location to a new local directory, and return the directory."""
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
    """The number of written sample directories, and ids and reasons of failures."""

    num_written: int
    failures: tuple[tuple[str, str], ...]


@raises_only(SchemaError)
def export_directories(
    directory: str | os.PathLike[str],
    name: str | os.PathLike[str] = DEFAULT_NAME,
    *,
    on_progress: Callable[[int, int | None], None] | None = None,
) -> ExportedDirectories:
    """Write each graph of a dataset, over all splits, as a GraphNet directory named by its id.

    If an id is not a valid directory name, or is not unique, the directory gets another name
    (`SampleTree`); the record in the directory contains the id. `on_progress` receives the number
    of finished graphs, and None for the total, which is unknown while streaming. The directory
    appears under its name when it is complete.

    Raises:
        DatasetNotFoundError: the dataset does not exist.
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
        # The cache contains links to its blobs; the copy must contain files.
        shutil.copytree(cached, copy)
        return


def _check_names(repo_id: str, revision: str | None) -> None:
    """Check all file names of a repository before its client writes files under them."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        # The base class of errors of the HTTP library, which depends on the release.
        HTTPError,  # pyright: ignore[reportPrivateImportUsage]
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        info = HfApi().dataset_info(repo_id, revision=revision)
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise
    except (HTTPError, OfflineModeIsEnabled, LocalEntryNotFoundError, ConnectionError):
        return  # the client uses its cache, or raises the same error
    for file in info.siblings or ():
        check_name(file.rfilename, repo_id)
