"""Loading of the embedded dataset, a directory, a Parquet file, a URL or a Hub repository."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from ..collector import not_collecting
from ..errors import DatasetNotFoundError, DecodedSizeError, SchemaError, raises_only
from ..schema import SCHEMA_VERSION
from ..verbosity import import_progress_bars
from .builders import check_downloads, check_features, parquet_builder, short_lived_memory
from .layout import layout_of
from .questions import (
    check_columns,
    check_split,
    fit_filters,
    no_config,
    other_version,
    split_text,
    without_empty_lists,
)
from .remote import Url, read_listing, read_schemas, remote_errors
from .table import check_file

if TYPE_CHECKING:
    import datasets

    Loaded = (
        datasets.Dataset
        | datasets.IterableDataset
        | datasets.DatasetDict
        | datasets.IterableDatasetDict
    )
    Split = str | datasets.NamedSplit | datasets.ReadInstruction

DEFAULT_NAME = "graphnet"
REPO_VARIABLE = "GRAPHNET_DATASETS_REPO"
STARTER = Path(__file__).parents[1] / "starter" / "graphnet"
REVISION = f"v{SCHEMA_VERSION}"
"""The branch of a Hub repository with this format version."""

HUB_TIMEOUT_S = 20.0
"""Seconds without an answer after which the Hub counts as unreachable."""

READ_AHEAD_BYTES = 2**16
"""Bytes that a stream from the Hub reads beyond each range requested by the Parquet reader. The
reader merges neighbouring ranges itself. With the client's default of 5 MiB, reading two columns
costs as much as reading the whole table."""

_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*\Z", re.ASCII)


@overload
def load_dataset(  # pyright: ignore[reportOverlappingOverload] (split's default decides)
    name: str | os.PathLike[str] = ...,
    config: str | None = ...,
    split: None = ...,
    *,
    streaming: Literal[False] = ...,
    filters: Any = ...,
    columns: Sequence[str] | None = ...,
    revision: str | None = ...,
    storage_options: Mapping[str, Any] | None = ...,
) -> datasets.DatasetDict: ...
@overload
def load_dataset(  # pyright: ignore[reportOverlappingOverload] (split's default decides)
    name: str | os.PathLike[str] = ...,
    config: str | None = ...,
    split: None = ...,
    *,
    streaming: Literal[True],
    filters: Any = ...,
    columns: Sequence[str] | None = ...,
    revision: str | None = ...,
    storage_options: Mapping[str, Any] | None = ...,
) -> datasets.IterableDatasetDict: ...
@overload
def load_dataset(
    name: str | os.PathLike[str] = ...,
    config: str | None = ...,
    split: Split = ...,
    *,
    streaming: Literal[False] = ...,
    filters: Any = ...,
    columns: Sequence[str] | None = ...,
    revision: str | None = ...,
    storage_options: Mapping[str, Any] | None = ...,
) -> datasets.Dataset: ...
@overload
def load_dataset(
    name: str | os.PathLike[str] = ...,
    config: str | None = ...,
    split: Split = ...,
    *,
    streaming: Literal[True],
    filters: Any = ...,
    columns: Sequence[str] | None = ...,
    revision: str | None = ...,
    storage_options: Mapping[str, Any] | None = ...,
) -> datasets.IterableDataset: ...
@overload
def load_dataset(  # pyright: ignore[reportOverlappingOverload] (split's default decides)
    name: str | os.PathLike[str] = ...,
    config: str | None = ...,
    split: list[Any] | tuple[Any, ...] = ...,
    *,
    streaming: bool = ...,
    filters: Any = ...,
    columns: Sequence[str] | None = ...,
    revision: str | None = ...,
    storage_options: Mapping[str, Any] | None = ...,
) -> list[Any]: ...
@overload
def load_dataset(
    name: str | os.PathLike[str] = ...,
    config: str | None = ...,
    split: Split | None = ...,
    *,
    streaming: bool = ...,
    filters: Any = ...,
    columns: Sequence[str] | None = ...,
    revision: str | None = ...,
    storage_options: Mapping[str, Any] | None = ...,
) -> Loaded: ...
@raises_only(SchemaError)
def load_dataset(
    name: str | os.PathLike[str] = DEFAULT_NAME,
    config: str | None = None,
    split: Split | list[Any] | tuple[Any, ...] | None = None,
    *,
    streaming: bool = False,
    filters: Any = None,
    columns: Sequence[str] | None = None,
    revision: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Loaded | list[Any]:
    """Load a table of graphs as a Hugging Face dataset.

    `name` is the embedded dataset (`graphnet`, or the replacement in `GRAPHNET_DATASETS_REPO`), a
    path with a slash or a `Path` (a dataset directory, or one Parquet file), a URL of a file system
    supported by `fsspec` (`s3://bucket/graphs`; `storage_options` are passed to it), or a Hub
    repository (`org/name`). `config` is a task, or `all`, the default; `excluded` contains the
    graphs that failed a check (`why_excluded`), which no other config contains. `split` has the
    syntax of `datasets` (`train[:10]`, `train+test`, `all`, a `datasets.Split`). A list of splits
    returns a list of datasets, and None returns a `DatasetDict` of all splits. `filters` are those
    of Parquet: `[("num_ops", "<", 200), ("task", "in", ["cv", "nlp"])]`, a list of such lists for
    alternatives, or a `pyarrow.dataset` expression. They apply to top-level scalars, and also to
    lists of strings: `("tags", "contains", "small")`. An empty list keeps all rows. `revision` is a
    branch, tag or commit of a Hub repository; the default is the branch of this format version. If
    no row matches, the dataset is empty.

    Raises:
        DatasetNotFoundError: the dataset, config or split does not exist; the message lists the
            existing ones.
        SchemaError: an unknown column, a filter that does not match the columns, or a damaged file.
        FormatVersionError: the table has another format version.

    >>> splits = load_dataset("graphnet", "cv", filters=[("num_ops", "<", 200)])
    >>> sorted(splits)
    ['test', 'train', 'validation']
    >>> set(splits["train"]["task"])
    {'cv'}
    """
    if isinstance(split, list | tuple):
        return [
            load_dataset(
                name, config, item, streaming=streaming, filters=filters, columns=columns,
                revision=revision, storage_options=storage_options,
            )
            for item in split
        ]  # fmt: skip
    split = split_text(split)
    place = locate(name, storage_options)
    columns = None if columns is None else list(columns)
    filters = without_empty_lists(filters)
    with remote_errors(place) if isinstance(place, Url) else contextlib.nullcontext():
        return _load(place, config, split, streaming, filters, columns, revision)


def _load(
    place: Path | Url | str,
    config: str | None,
    split: str | None,
    streaming: bool,
    filters: Any,
    columns: Sequence[str] | None,
    revision: str | None,
) -> Loaded:
    with not_collecting():
        import_progress_bars()
        import datasets
        from datasets.exceptions import DatasetGenerationError

    if isinstance(place, Path):
        builder = _local_builder(place, config, filters, columns)
    elif isinstance(place, Url):
        builder = _url_builder(place, config, filters, columns)
    else:
        builder = _hub_builder(place, config, revision, filters, columns)
    if not isinstance(place, Path):
        check_downloads(builder)
    # Offline, `datasets` knows its cached splits but no files.
    splits = list(builder.config.data_files or builder.info.splits or ())
    check_split(split, splits, place)
    try:
        if streaming:
            streamed = builder.as_streaming_dataset(split=split)
            check_features(builder)
            return streamed
        with short_lived_memory():
            builder.download_and_prepare(
                verification_mode="no_checks", download_config=_download_config(place)
            )
    except DatasetGenerationError as error:
        if isinstance(error.__cause__, DecodedSizeError):
            raise error.__cause__ from error
        cause = (str(error.__cause__ or error).splitlines() or [""])[0].rstrip(".")
        raise SchemaError(
            f"`{place}` cannot be read: {cause}. Download its files again, or write them again."
        ) from (place.cause(error) if isinstance(place, Url) else error)
    check_features(builder)
    if split is not None:
        return _as_dataset(builder, split, place)
    return datasets.DatasetDict(
        {split_name: _as_dataset(builder, split_name, place) for split_name in splits}
    )


def locate(
    name: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
) -> Path | Url | str:
    """Return the path, URL or Hub repository of a dataset's name.

    Raises:
        DatasetNotFoundError: the name has another form.
    """
    if isinstance(name, os.PathLike):
        return Path(name)
    if name.startswith("file://"):
        return Path(unquote(urlsplit(name).path))
    if "://" in name:
        return Url(name, dict(storage_options or {}))
    if name.startswith((".", "/", "~")) or name.endswith(".parquet"):
        return Path(name).expanduser()
    if is_repo_id(name):
        return name
    if name == DEFAULT_NAME:
        configured = os.environ.get(REPO_VARIABLE)
        if not configured:
            return STARTER
        if configured != DEFAULT_NAME:
            return locate(configured, storage_options)
    raise DatasetNotFoundError(
        f"There is no dataset `{name}`. Use `{DEFAULT_NAME}` for the embedded dataset, `./{name}` "
        "for a path, `s3://…` or another URL, or `org/name` for a Hub repository."
    )


def is_repo_id(name: str) -> bool:
    """Return whether a name has the form of a Hub repository's name.

    >>> is_repo_id("org/graphs"), is_repo_id("graphs")
    (True, False)
    """
    return _REPO_ID.match(name) is not None


def _local_builder(
    place: Path, config: str | None, filters: Any, columns: Sequence[str] | None
) -> Any:
    """Return the builder of a directory or file."""
    layout = layout_of(place)
    splits = layout.configs.get(config or layout.default)
    if splits is None:
        raise no_config(place, config, layout.configs)
    schemas = [check_file(path) for paths in splits.values() for path in paths]
    filters, features = _fit_to_files(schemas, filters, columns, place)
    # Pass files instead of the directory: `datasets` caches a directory by its README alone, and
    # uses a cached dataset of the same name if the directory is missing.
    data_files = {
        split: [glob.escape(str(path.resolve())) for path in paths]
        for split, paths in splits.items()
    }
    return parquet_builder(
        data_files=data_files,
        **_without_none(filters=filters, columns=columns, features=features),
    )


def _url_builder(
    place: Url, config: str | None, filters: Any, columns: Sequence[str] | None
) -> Any:
    """Return the builder of a directory or file at a URL."""
    listing = read_listing(place)
    splits = listing.configs.get(config or listing.default)
    if splits is None:
        raise no_config(place, config, listing.configs)
    schemas = read_schemas([url for urls in splits.values() for url in urls])
    filters, features = _fit_to_files(schemas, filters, columns, place)
    data_files = {split: [glob.escape(url.text) for url in urls] for split, urls in splits.items()}
    return parquet_builder(
        data_files=data_files,
        storage_options=dict(place.options) or None,
        # Part of the cache key, because `datasets` cannot detect changed files on all file systems.
        description=f"state {listing.state}",
        **_without_none(filters=filters, columns=columns, features=features),
    )


def _fit_to_files(
    schemas: Sequence[pa.Schema], filters: Any, columns: Any, place: Path | Url
) -> tuple[Any, Any]:
    """Check columns and filters; return converted filters, and features if files differ."""
    import datasets

    # Nullable columns may be added within a version; older files have null in them.
    widest = max(schemas, key=lambda schema: len(schema.names))
    check_columns(widest, filters, columns, place)
    is_mixed = any(len(schema.names) < len(widest.names) for schema in schemas)
    features = datasets.Features.from_arrow_schema(widest) if is_mixed else None
    return fit_filters(filters, widest), features


def _download_config(place: Path | Url | str) -> Any:
    """Return the download settings for a location, or None for the defaults of `datasets`."""
    from datasets import DownloadConfig

    if not isinstance(place, Url):
        return None
    # The cache of `datasets` uses the URL alone as key and would miss changed files.
    return DownloadConfig(force_download=True, storage_options=dict(place.options))


def _hub_builder(
    repo_id: str, config: str | None, revision: str | None, filters: Any, columns: Any
) -> Any:
    """Return the builder of a repository, preferably at the branch of this format version."""
    import datasets
    from datasets.exceptions import DatasetNotFoundError as NotOnHubError

    _check_reachable(repo_id)
    options = _without_none(filters=filters, columns=columns)
    options["storage_options"] = {"hf": {"block_size": READ_AHEAD_BYTES}}
    for tried_revision in [revision] if revision else [REVISION, None]:
        try:
            builder = datasets.load_dataset_builder(
                repo_id, config, revision=tried_revision, **options
            )
        except NotOnHubError as error:
            if tried_revision != REVISION or revision:
                raise not_on_hub(repo_id, revision) from error
        except ValueError as error:
            if "BuilderConfig" not in str(error):
                raise
            names = datasets.get_dataset_config_names(repo_id, revision=tried_revision)
            raise no_config(repo_id, config, names) from error
        else:
            if builder.info.features is not None:
                schema = builder.info.features.arrow_schema
                check_columns(schema, filters, columns, repo_id)
                parquet_config: Any = builder.config  # of the class that reads Parquet files
                parquet_config.filters = fit_filters(filters, schema)
            return builder
    raise AssertionError("The loop returns or raises.")


def _check_reachable(repo_id: str) -> None:
    """Refuse a repository that is neither cached nor on a Hub that answers.

    One request is enough; the clients behind `datasets` would repeat theirs for a minute.

    Raises:
        DatasetNotFoundError: the Hub cannot be reached, and the repository is not cached.
    """
    from datasets import config
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import (
        # The base class of errors of the HTTP library, which depends on the release.
        HTTPError,  # pyright: ignore[reportPrivateImportUsage]
    )

    prepared = Path(config.HF_DATASETS_CACHE) / repo_id.replace("/", "___")
    fetched = Path(constants.HF_HUB_CACHE) / f"datasets--{repo_id.replace('/', '--')}"
    if prepared.is_dir() or fetched.is_dir():
        return
    try:
        HfApi().dataset_info(repo_id, timeout=HUB_TIMEOUT_S)
    except (HTTPError, OSError) as error:
        if getattr(error, "response", None) is None:  # otherwise the Hub answered
            raise unreachable(repo_id, constants.ENDPOINT) from error


def unreachable(repo_id: str, endpoint: str) -> DatasetNotFoundError:
    """Return the error for a repository that cannot be loaded without a network."""
    return DatasetNotFoundError(
        f"`{repo_id}` cannot be loaded: the Hub ({endpoint}) cannot be reached, and the repository "
        "is not in the cache. Check the network, or name a local dataset (`./…`)."
    )


def not_on_hub(repo_id: str, revision: str | None = None) -> DatasetNotFoundError:
    """Return the error for a repository or revision that does not exist."""
    where = f" at the revision `{revision}`" if revision else ""
    return DatasetNotFoundError(
        f"There is no dataset `{repo_id}`{where} on the Hub, or it is private. Check the name, or "
        "log in with `hf auth login`."
    )


def _without_none(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _as_dataset(builder: Any, split: str, place: Path | Url | str) -> datasets.Dataset:
    """Return a prepared split, or an empty dataset if `datasets` raises because it has no rows."""
    import datasets

    try:
        dataset = builder.as_dataset(split=split)
    except ValueError as error:
        if "corresponds to no data" not in str(error):
            raise
        features = builder.info.features
        return datasets.Dataset.from_dict({name: [] for name in features}, features=features)
    if "schema_version" in dataset.column_names and len(dataset):
        version = dataset.data.column("schema_version")[0].as_py()
        if version != SCHEMA_VERSION:
            raise other_version(place, version)
    return dataset
