"""Datasets on any file system supported by `fsspec`, at URLs such as `s3://` or `memory://`."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from ..credentials import hide_credentials, hide_options, hide_parts
from ..decoding import check_decoded_size
from ..errors import DatasetNotFoundError, GraphNetError, MissingExtraError
from ..paths import check_name, place_inside
from .layout import find_configs, parse_card
from .table import check_schema

_MAX_CONNECTIONS = 16
_EXTRAS = {"s3": ("s3fs", "s3"), "s3a": ("s3fs", "s3")}


@dataclasses.dataclass(frozen=True, repr=False)
class Url:
    """A location on a file system of `fsspec`, printed without the credentials in its URL.

    `options` are passed to the file system: credentials, `endpoint_url`, `anon`, …

    >>> print(Url("https://me:secret@host/graphs"))
    https://***@host/graphs
    """

    text: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return hide_credentials(self.text)

    def __repr__(self) -> str:
        return f"Url({str(self)!r})"

    def open_file_system(self) -> tuple[Any, str]:
        """Return the file system and the path on it.

        Raises:
            MissingExtraError: the package for the protocol is not installed.
            DatasetNotFoundError: the protocol is not supported.
        """
        from fsspec.core import url_to_fs

        protocol = self.text.partition("://")[0]
        try:
            file_system, path = url_to_fs(self.text, **self.options)
        except ImportError as error:
            if protocol in _EXTRAS:
                package, extra = _EXTRAS[protocol]
                raise MissingExtraError(package, extra, f"Reading `{protocol}://`") from error
            raise DatasetNotFoundError(
                f"`{self}` cannot be reached: {self.reason(error)}. Install the package of its "
                "file system."
            ) from self.cause(error)
        except ValueError as error:
            raise DatasetNotFoundError(
                f"`{self}` cannot be reached: {self.reason(error)}. Use `s3://…`, `gs://…`, "
                "`memory://…` or another protocol of `fsspec`."
            ) from self.cause(error)
        except Exception as error:  # options that the file system does not support, for example
            raise DatasetNotFoundError(
                f"`{self}` cannot be reached ({type(error).__name__}: {self.reason(error)}). "
                "Check the address and `storage_options`."
            ) from self.cause(error)
        return file_system, path.rstrip("/")

    def reason(self, error: BaseException) -> str:
        """Return the first line of an error's message with credentials removed."""
        line = (str(error).splitlines() or [""])[0].rstrip(".")
        return hide_options(hide_parts(hide_credentials(line), self.text), self.options)

    def cause(self, error: BaseException) -> BaseException | None:
        """Return the error as a cause to display, or None if this location has credentials.

        Tracebacks display the messages of all causes unchanged.
        """
        return None if self.options or str(self) != self.text else error

    def child(self, name: str) -> Url:
        """Return the location `name` below this one."""
        return Url(f"{self.text.rstrip('/')}/{name}", self.options)


@dataclasses.dataclass(frozen=True)
class Listing:
    """The files of a dataset by config and split, its default config, and its state."""

    configs: dict[str, dict[str, list[Url]]]
    default: str
    state: str
    """A hash that changes with any file or the README."""


def read_listing(place: Url) -> Listing:
    """Read the configs and splits at a URL, which is a dataset directory or a Parquet file.

    Raises:
        DatasetNotFoundError: there is no table, or the URL cannot be reached.
        SchemaError: the `configs` of its README are invalid.
    """
    file_system, root = place.open_file_system()
    with remote_errors(place):
        file_system.invalidate_cache()
        if _is_file(file_system, root, place):
            return Listing({"default": {"train": [place]}}, "default", file_system.ukey(root))
        entries = _read_entries(file_system, root, place)

        def find(pattern: str) -> Iterator[str]:
            for path in file_system.glob(f"{root}/{pattern}"):
                # A server may list arbitrary names; reject those on other hosts.
                below = str(path).startswith(f"{root}/")
                yield check_name(str(path)[len(root) + 1 :] if below else f"/{path}", str(place))

        configs, default = find_configs(entries, find, str(place))
        names = {
            name
            for splits in configs.values()
            for names_of_split in splits.values()
            for name in names_of_split
        }
        if not names:
            raise DatasetNotFoundError(
                f"`{place}` has no Parquet table. Write a dataset there with "
                f"`graphnet export {place}`."
            )
        states = "".join(f"{name} {file_system.ukey(f'{root}/{name}')}" for name in sorted(names))
    return Listing(
        {
            config: {
                split: [place.child(name) for name in names_of_split]
                for split, names_of_split in splits.items()
            }
            for config, splits in configs.items()
        },
        default,
        hashlib.sha256(states.encode()).hexdigest(),
    )


def read_schemas(places: list[Url]) -> list[pa.Schema]:
    """Return the schemas of Parquet files, reading only their footers.

    Raises:
        SchemaError: a file is not a complete Parquet file.
        FormatVersionError: a file has another format version.
    """

    def read(place: Url) -> pa.Schema:
        file_system, path = place.open_file_system()
        with remote_errors(place), file_system.open(path, "rb") as file:
            return check_schema(file, str(place), is_remote=True)

    with concurrent.futures.ThreadPoolExecutor(_MAX_CONNECTIONS) as threads:
        return list(threads.map(read, places))


def upload(source: Path, place: Url) -> None:
    """Copy a local dataset directory to a URL, its README last.

    Raises:
        DatasetNotFoundError: the URL cannot be written.
    """
    file_system, root = place.open_file_system()
    with remote_errors(place):
        file_system.makedirs(root, exist_ok=True)
        files = sorted(path for path in source.rglob("*") if path.is_file())
        for path in sorted(files, key=lambda path: path.name == "README.md"):
            name = f"{root}/{path.relative_to(source).as_posix()}"
            file_system.makedirs(name.rpartition("/")[0], exist_ok=True)
            file_system.put_file(str(path), name)


def is_empty(place: Url) -> bool:
    """Return whether there are no files at a URL or below it."""
    file_system, root = place.open_file_system()
    with remote_errors(place):
        return not file_system.exists(root) or not file_system.find(root)


def download(place: Url, target: Path) -> None:
    """Copy the tables and the README of a dataset from a URL to a local directory."""
    listing = read_listing(place)
    file_system, root = place.open_file_system()
    files = {
        url.text[len(place.text.rstrip("/")) + 1 :] or _last_part(place): url
        for splits in listing.configs.values()
        for urls in splits.values()
        for url in urls
    }
    target.mkdir(parents=True)
    with remote_errors(place):
        for name, url in files.items():
            local = place_inside(target, name, str(place))
            local.parent.mkdir(parents=True, exist_ok=True)
            file_system.get_file(url.open_file_system()[1], str(local))
        if file_system.isfile(f"{root}/README.md"):
            file_system.get_file(f"{root}/README.md", str(target / "README.md"))


def _is_file(file_system: Any, path: str, place: Url) -> bool:
    if place.text.startswith(("http://", "https://")):
        # HTTP presents a directory listing as a file.
        return urlsplit(place.text).path.endswith(".parquet")
    return file_system.isfile(path)


def _last_part(place: Url) -> str:
    """Return the file name at the end of a URL, without its query and fragment."""
    return unquote(urlsplit(place.text).path).rstrip("/").rpartition("/")[2] or "train-0000.parquet"


@contextlib.contextmanager
def remote_errors(place: Url) -> Iterator[None]:
    """Convert any error of a file system to an error that names the location."""
    try:
        yield
    except GraphNetError:
        raise
    except Exception as error:  # botocore, gcsfs and others share no base class
        reason = f"{type(error).__name__}: {place.reason(error)}"
        raise DatasetNotFoundError(
            f"`{place}` cannot be reached ({reason}). Check the address, and provide endpoint and "
            "credentials by the file system's own settings or `storage_options`."
        ) from place.cause(error)


def _read_entries(file_system: Any, root: str, place: Url) -> Any:
    readme = f"{root}/README.md"
    if not file_system.isfile(readme):
        return None
    check_decoded_size(int(file_system.size(readme) or 0), f"{place}/README.md")
    return parse_card(file_system.cat_file(readme), f"{place}/README.md").get("configs")
