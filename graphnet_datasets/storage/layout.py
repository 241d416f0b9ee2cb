"""The layout of a dataset directory: configs and splits, named in the YAML of its README.

    graphnet/
      README.md                  configs, features and a description
      cv/train-0000.parquet      one folder per task; the split is the part before the dash
      nlp/train-0000.parquet
      excluded/train-0000.parquet  graphs that failed a check, with `why_excluded`, if there are any
      runs/train-0000.parquet    records of timed runs, if there are any

`datasets.load_dataset("graphnet", "cv")` reads such a directory too. It caches local directories by
the content of their README, which therefore contains a fingerprint of the files: after adding a
file, call `write_readme` again.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from ..atomic import write_text
from ..decoding import check_decoded_size, read_bytes
from ..errors import DatasetNotFoundError, SchemaError, UnsafePathError
from ..paths import check_name, check_target
from ..schema.tables import ALL, config_named
from .table import check_schema

if TYPE_CHECKING:
    import io

_YAML_BLOCK = re.compile(r"\s*---\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
"""The YAML between two lines of dashes at the top of a README."""

_MAX_YAML_DEPTH = 100


class Layout(NamedTuple):
    """The files of a dataset directory by config and split, and its default config."""

    configs: dict[str, dict[str, list[Path]]]
    default: str


Find = Callable[[str], Iterable[str]]
"""Maps a pattern to the matching file names, relative to a dataset's root."""


def layout_of(place: Path) -> Layout:
    """Return the layout of a dataset directory, or of one Parquet file as the split `train`.

    Raises:
        DatasetNotFoundError: `place` does not exist, or has no table.
        SchemaError: as in `read_layout`.
    """
    if place.is_file():
        return Layout({"default": {"train": [place]}}, "default")
    return read_layout(place)


def read_layout(directory: str | os.PathLike[str]) -> Layout:
    """Read the configs and splits of a dataset directory.

    Without a README with `configs:` the layout is derived from the folders.

    Raises:
        DatasetNotFoundError: the directory does not exist, or has no table.
        SchemaError: the `configs` of its README are invalid.
        UnsafePathError: a link of the README or a table leads outside of the directory.
    """
    root = Path(directory)
    if not root.is_dir():
        raise DatasetNotFoundError(f"The directory `{directory}` does not exist. Check the path.")
    if not os.access(root, os.R_OK | os.X_OK):
        raise DatasetNotFoundError(
            f"No permission to read the directory `{directory}`. Ask its owner for access."
        )
    layout = _local_layout(root, _card_data(root).get("configs"))
    if not any(layout.configs.values()):
        sample_record = next(root.rglob("graph_net.json"), None)
        advice = (
            "It contains GraphNet sample directories: read them with `read_directory`, or convert "
            "them to a table with `graphnet import`."
            if sample_record
            else "Write a dataset directory with `graphnet export`."
        )
        raise DatasetNotFoundError(f"`{directory}` has no Parquet table. {advice}")
    return layout


def write_readme(
    directory: str | os.PathLike[str],
    body: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Path:
    """Write the README of a dataset directory from the Parquet files in its folders.

    `body` is the text below the YAML; None keeps the existing text, or writes a table of the
    configs. `metadata` are additional entries of the YAML (licence, tags); None keeps the existing
    entries. Equal files give equal READMEs.

    Raises:
        DatasetNotFoundError, SchemaError: as in `read_layout`, or a file is damaged.
    """
    path = Path(directory, "README.md")
    if path.is_file() and (body is None or metadata is None):
        earlier, text = split_readme(read_bytes(path), str(path))
        body = text if body is None else body
        metadata = earlier if metadata is None else metadata
    return write_text(path, readme_text(directory, body, metadata or {}))


def readme_text(
    directory: str | os.PathLike[str],
    body: str | None,
    metadata: Mapping[str, Any],
    *,
    open_table: Callable[[str], AbstractContextManager[BinaryIO]] | None = None,
) -> str:
    """Return the README that `write_readme` writes, without reading an existing README.

    `open_table` opens a table by name; the default opens it without additional checks.

    Raises:
        DatasetNotFoundError, SchemaError: as `write_readme`.
    """
    import datasets
    from huggingface_hub import DatasetCardData

    root = Path(directory)
    layout = _local_layout(root, None)
    if not layout.configs:
        raise DatasetNotFoundError(
            f"`{directory}` has no Parquet table. Write its tables before its README."
        )
    tables: dict[Path, _Table] = {}
    paths = {
        path for splits in layout.configs.values() for files in splits.values() for path in files
    }
    for path in sorted(paths):
        name = path.relative_to(root).as_posix()
        with path.open("rb") if open_table is None else open_table(name) as file:
            tables[path] = _describe_table(file, path)
    configs = describe_configs(
        {str(path.relative_to(root)): table.sha256 for path, table in tables.items()}
    )
    features, counts = [], []
    columns: dict[pa.Schema, list[dict[str, Any]]] = {}
    for name, splits in layout.configs.items():
        first = next(iter(splits.values()))[0]
        # Configs with equal columns share one list object, which YAML writes once.
        schema = tables[first].schema
        if schema not in columns:
            columns[schema] = datasets.Features.from_arrow_schema(schema)._to_yaml_list()
        features.append({"config_name": name, "features": columns[schema]})
        for split, paths in splits.items():
            counts.append((name, split, sum(tables[path].num_rows for path in paths)))
    if body is None:
        body = _default_body(counts)
    data = DatasetCardData(**metadata, configs=configs, dataset_info=features)
    return f"---\n{data.to_yaml()}\n---\n{body.strip()}\n"


class _Table(NamedTuple):
    sha256: str
    schema: pa.Schema
    num_rows: int


def _describe_table(file: BinaryIO, path: Path) -> _Table:
    schema = check_schema(file, path).remove_metadata()
    num_rows = pq.read_metadata(file).num_rows
    file.seek(0)
    digest = hashlib.file_digest(cast("io.BufferedReader", file), "sha256")
    return _Table(digest.hexdigest(), schema, num_rows)


def split_readme(content: bytes, where: str) -> tuple[dict[str, Any], str]:
    """Split a README into its YAML without `configs` and `dataset_info`, and the text below it.

    Raises:
        SchemaError: the YAML is invalid.
    """
    card = parse_card(content, where)
    metadata = {
        name: value for name, value in card.items() if name not in ("configs", "dataset_info")
    }
    text = content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    block = _YAML_BLOCK.match(text)
    return metadata, text if block is None else text[block.end() :]


def describe_configs(files: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the `configs` of a README for a mapping of relative paths to sha256 hashes.

    >>> [config] = describe_configs({"runs/train-0000.parquet": "0" * 64})
    >>> config["data_files"]
    [{'split': 'train', 'path': ['runs/train-*.parquet']}]
    """
    grouped, default = group_by_folder(files)
    entries = []
    for name, splits in grouped.items():
        patterns = [
            {
                "split": split,
                "path": sorted({f"{path.partition('/')[0]}/{split}-*.parquet" for path in paths}),
            }
            for split, paths in splits.items()
        ]
        digest = hashlib.sha256()
        for path in (path for paths in splits.values() for path in paths):
            digest.update(f"{path}\0".encode() + bytes.fromhex(files[path]))
        entry = {
            "config_name": name,
            "data_files": patterns,
            "description": f"content {digest.hexdigest()[:16]}",
        }
        entries.append({**entry, "default": True} if name == default else entry)
    return entries


def group_by_folder(paths: Iterable[str]) -> tuple[dict[str, dict[str, list[str]]], str]:
    """Group paths `config/split-*.parquet` by config and split; add `all`; return the default.

    >>> group_by_folder(["cv/test-0.parquet"])
    ({'cv': {'test': ['cv/test-0.parquet']}, 'all': {'test': ['cv/test-0.parquet']}}, 'all')
    """
    configs: dict[str, dict[str, list[str]]] = {}
    for path in sorted(paths):
        name, _, file = path.partition("/")
        configs.setdefault(name, {}).setdefault(file.partition("-")[0], []).append(path)
    everything: dict[str, list[str]] = {}
    for name, splits in configs.items():
        if config_named(name).is_in_all:
            for split, split_paths in splits.items():
                everything.setdefault(split, []).extend(split_paths)
    if everything:
        configs[ALL] = everything
    return configs, ALL if everything else next(iter(configs), "")


def _card_data(root: Path) -> dict[str, Any]:
    readme = root / "README.md"
    if not readme.is_file():
        return {}
    check_target(root, readme)
    return read_card_data(readme, str(readme))


def read_card_data(readme: Path, where: str) -> dict[str, Any]:
    """Return the YAML of a README; `where` is its original location for messages.

    Raises:
        SchemaError: the YAML is invalid.
    """
    try:
        return parse_card(read_bytes(readme), where)
    except OSError as error:
        raise SchemaError(
            f"The YAML at the top of `{where}` cannot be read: {error}. Correct it."
        ) from error


def parse_card(content: bytes, where: str) -> dict[str, Any]:
    """Parse the YAML at the top of a README, {} without YAML.

    Raises:
        SchemaError: the YAML is invalid, or not a mapping.
    """
    import yaml  # directly: the Hub client's function for this imports the whole client

    # As safe as `metadata_load`, and ten times faster if libyaml is available.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        block = _YAML_BLOCK.match(content.decode("utf-8-sig").replace("\r\n", "\n"))
        if block is not None:
            _check_depth(yaml.parse(block[1], loader), where)
        card = None if block is None else yaml.load(block[1], loader)  # noqa: S506 (safe)
        if card is not None and not isinstance(card, dict):
            raise ValueError(f"It must be a mapping, got `{type(card).__name__}`")
    except SchemaError:
        raise
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise SchemaError(
            f"The YAML at the top of `{where}` cannot be read: {error}. Correct it."
        ) from error
    check_decoded_size(_expanded_bytes(card, where), where)
    return card or {}


def _check_depth(events: Iterable[Any], where: str) -> None:
    """Check the nesting of YAML; the C loader is recursive, and too deep nesting would crash it.

    Raises:
        SchemaError: the YAML is nested too deeply.
    """
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if depth > _MAX_YAML_DEPTH:
            raise _too_deep(where)


def _too_deep(where: str) -> SchemaError:
    return SchemaError(
        f"The YAML at the top of `{where}` is nested deeper than {_MAX_YAML_DEPTH} levels, or "
        "contains itself. Write it without aliases."
    )


def _expanded_bytes(value: Any, where: str) -> int:
    """Return the size in bytes of YAML data with all aliases expanded.

    A few lines of nested aliases can expand to any number of values.

    Raises:
        SchemaError: a value contains itself, or is nested too deeply.
    """
    sizes: dict[int, int] = {}

    def size_of(value: Any, depth: int) -> int:
        if not isinstance(value, dict | list):
            return len(value) if isinstance(value, str) else 8
        if sizes.get(id(value)) == 0 or depth > _MAX_YAML_DEPTH:
            raise _too_deep(where)
        if id(value) not in sizes:
            sizes[id(value)] = 0
            parts = [*value, *value.values()] if isinstance(value, dict) else value
            sizes[id(value)] = 8 + sum(size_of(part, depth + 1) for part in parts)
        return sizes[id(value)]

    return size_of(value, 0)


def _local_layout(root: Path, entries: Any) -> Layout:
    def find(pattern: str) -> Iterator[str]:
        for path in root.glob(pattern):
            check_target(root, path)
            yield str(path.relative_to(root))

    configs, default = find_configs(entries, find, str(root))
    return Layout(
        {
            config: {split: [root / name for name in names] for split, names in splits.items()}
            for config, splits in configs.items()
        },
        default,
    )


def find_configs(
    entries: Any, find: Find, where: str
) -> tuple[dict[str, dict[str, list[str]]], str]:
    """Return the names of a dataset's files by config and split, and its default config.

    `entries` are the `configs` of its README; without them the folders determine the configs.

    Raises:
        SchemaError: the entries are not configs with their files.
        UnsafePathError: a name is outside the dataset.

    >>> find_configs(None, lambda pattern: ["cv/train-0.parquet"], "mine")[0]["cv"]
    {'train': ['cv/train-0.parquet']}
    """

    def checked(pattern: str) -> Iterator[str]:
        return (check_name(name, where) for name in find(pattern))

    if not entries:
        return group_by_folder(checked("*/*-*.parquet"))
    configs: dict[str, dict[str, list[str]]] = {}
    default = ""
    try:
        for entry in entries:
            name = str(entry["config_name"])
            configs[name] = _files_of(checked, entry["data_files"])
            if entry.get("default"):
                default = name
    except UnsafePathError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, NotImplementedError) as error:
        raise SchemaError(
            f"The `configs` in `{where}/README.md` are invalid. They must be a list of "
            "`config_name` and `data_files`, each with a `split` and a `path` inside the directory."
        ) from error
    return configs, default or next(iter(configs))


def _files_of(find: Find, data_files: Any) -> dict[str, list[str]]:
    """Return the files per split of one config, in any of the forms that `datasets` accepts."""
    if isinstance(data_files, dict):
        data_files = [{"split": split, "path": path} for split, path in data_files.items()]
    elif isinstance(data_files, str) or isinstance(data_files[0], str):
        data_files = [{"split": "train", "path": data_files}]
    splits: dict[str, list[str]] = {}
    for entry in data_files:
        patterns = [entry["path"]] if isinstance(entry["path"], str) else entry["path"]
        if any(_leads_outside(pattern) for pattern in patterns):
            raise ValueError("A path is outside the directory. Use paths inside it.")
        files = sorted({name for pattern in patterns for name in find(pattern)})
        split = str(entry["split"])
        if files:
            splits[split] = files
    return splits


def _leads_outside(pattern: str) -> bool:
    parts = pattern.replace("\\", "/").split("/")
    return pattern.startswith(("/", "~")) or "://" in pattern or ".." in parts


def _default_body(counts: list[tuple[str, str, int]]) -> str:
    rows = "\n".join(f"| {name} | {split} | {count} |" for name, split, count in counts)
    return f"""# GraphNet Datasets

Computational graphs of real models, one row a graph. `datasets.load_dataset("graphnet", "cv")`
beside this directory loads a table; `graphnet_datasets.Sample.from_row(row)` gives the graph.

| config | split | rows |
|---|---|---|
{rows}
"""
