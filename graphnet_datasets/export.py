"""`export_dataset`: a dataset as a directory that plain `datasets` reads."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from .errors import DatasetExistsError
from .layout import read_layout, write_readme
from .loading import DEFAULT_NAME, REVISION, locate, not_on_hub


def export_dataset(
    directory: str | os.PathLike[str], name: str | os.PathLike[str] = DEFAULT_NAME
) -> Path:
    """Write the dataset `name` as a directory and return its path.

    Beside a directory `graphnet`, `datasets.load_dataset("graphnet", "cv")` loads it. The directory
    appears under its name only when it is complete.

    Raises:
        DatasetNotFoundError: no dataset has that name.
        DatasetExistsError: the directory exists and is not empty.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     (export_dataset(f"{parent}/graphnet") / "README.md").is_file()
    True
    """
    target = Path(directory)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DatasetExistsError(f"`{target}` exists. Choose another directory, or delete it.")
    place = locate(name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as temporary:
        copy = Path(temporary) / target.name
        if isinstance(place, Path):
            _copy(place, copy)
        else:
            _download(place, copy)
        copy.replace(target)
    return target


def _copy(source: Path, copy: Path) -> None:
    splits_by_config = read_layout(source).configs
    files = {
        path for splits in splits_by_config.values() for paths in splits.values() for path in paths
    }
    for path in sorted(files):
        place = copy / path.relative_to(source)
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
