"""Selection of samples by names, paths, rows or samples."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..analysis.columns import hash_columns
from ..decoding import read_bytes
from ..errors import DatasetNotFoundError, GraphNetError, RunError, SchemaError, raises_only
from ..sample import Sample
from ..schema import ALL, CONFIGS, sample_from_row, sample_to_row
from ..schema.tables import COMPILER_BUGS, SUBGRAPHS
from ..suggestions import did_you_mean
from ..terminal import counted
from ..verbosity import hidden_progress_bars
from .filters import Filters, as_filters, columns_of, nearest_choices
from .loading import load_dataset, locate
from .local_rows import read_local_ids, read_local_rows

MAX_IDS_NAMED = 5
LIST = "@"
"""Prefix of a path of a file with sample ids, one per line."""

_LISTED = ("id", "framework", "family", "num_ops")
"""Columns needed for the order and the identity of rows; filters add theirs."""


@raises_only(SchemaError)
def select_rows(
    samples: Any, filters: Filters | Any = None, *, dataset: str | os.PathLike[str] = "graphnet"
) -> list[dict[str, Any]]:
    """Return rows of the `graphs` table, with hashes and family, for the selected samples.

    The first argument is a name, a path, a sample, a row, or an iterable of these (a
    `datasets.Dataset` is an iterable of rows). A name is a config (`cv`; `excluded` for graphs that
    failed a check, `fusible` for parts), a sample's id (`timm/resnet18`) or the name of `dataset`.
    A path starts with `.`, `/` or `~`, or ends in `.parquet`. It is a GraphNet sample directory, a
    directory of these, a dataset directory or a Parquet file. All splits of a config, a dataset or
    a file are read, ordered by number of operators. `@ids.txt` selects the ids in a file, one per
    line, as written by `graphnet select`. Repeated samples are returned once. `filters` are
    `Filters`, or conditions in the form of `load_dataset`.

    Raises:
        DatasetNotFoundError: a name or path does not exist.
        RunError: an item is neither a name nor a sample, or a row lacks columns.
    """
    filters = as_filters(filters)
    return choose(samples, filters, dataset=dataset).read(filters.limit)


def require(
    samples: Any,
    filters: Filters | Any = None,
    *,
    dataset: str | os.PathLike[str] = "graphnet",
    framework: str = "",
) -> Chosen:
    """Select at least one sample like `select_rows`, optionally of one framework, but read no rows.

    Raises:
        DatasetNotFoundError: a name or path does not exist, or no sample matches; the message names
            the nearest filters that keep samples.
        RunError: the filters exclude `framework`.

    >>> require("torch/resnet-18", Filters(max_ops=9))
    Traceback (most recent call last):
      ...
    graphnet_datasets.errors.DatasetNotFoundError: No sample of `torch/resnet-18` matches \
`--max-ops 9`. Without `--max-ops 9`, 1 sample remains; the nearest is `--max-ops 69`.
    """
    filters = as_filters(filters)
    samples = list(samples) if isinstance(samples, Iterator) else samples
    if framework:
        if filters.framework and framework not in filters.framework:
            raise RunError(
                f"`--framework {' '.join(filters.framework)}` excludes the samples of {framework}, "
                "but only these are supported here. Remove the option."
            )
        filters = dataclasses.replace(filters, framework=(framework,))
    chosen = choose(samples, filters, dataset=dataset).limited(filters.limit)
    if not len(chosen):
        raise no_match(samples, filters, dataset=dataset)
    return chosen


def select_one(sample: Any, *, dataset: str | os.PathLike[str] = "graphnet") -> dict[str, Any]:
    """Return the row of the only sample that a name, a path, a sample or a row selects.

    Raises:
        DatasetNotFoundError: there is no such name or path, or it selects several samples.

    >>> select_one("torch/resnet-18")["num_ops"]
    69
    """
    chosen = choose(sample, dataset=dataset)
    if len(chosen) != 1:
        listed = ", ".join(f"`{name}`" for _, name in chosen.names[:MAX_IDS_NAMED])
        more = " …" if len(chosen) > MAX_IDS_NAMED else ""
        raise DatasetNotFoundError(
            f"`{sample!s:.200}` selects {counted(len(chosen), 'sample')}, but one is needed. "
            + (f"Choose one by its id: {listed}{more}" if listed else "Choose another path.")
        )
    return chosen.read()[0]


def no_match(
    samples: Any, filters: Filters, *, dataset: str | os.PathLike[str] = "graphnet"
) -> DatasetNotFoundError:
    """Return the error for an empty selection; it names the nearest filters that keep samples."""
    items = samples if isinstance(samples, list | tuple) else [samples]
    names = [str(item) for item in items if isinstance(item, str | os.PathLike)]
    listed = ", ".join(f"`{name}`" for name in names[:5]) or "the dataset"
    if filters.limit == 0:
        return DatasetNotFoundError(f"A limit of 0 keeps no sample of {listed}. Use at least 1.")
    rows = [entry.row for group in _list_all(samples, dataset, filters) for entry in group]
    if not rows:
        return DatasetNotFoundError(f"{listed} has no samples. `graphnet list` shows samples.")
    problem = f"No sample of {listed} matches `{filters.describe(filters.active)}`."
    hints = [nearest_choices(filters, rows, "samples")]
    if names and all(name in CONFIGS for name in names):
        with contextlib.suppress(GraphNetError):
            elsewhere = [entry.row for entry in _list(dataset, None, _columns(filters))]
            if number := sum(map(filters.keeps, elsewhere)):
                hints.append(f"In `{ALL}`, {number} match.")
    return DatasetNotFoundError(" ".join([problem, *hints]))


@dataclasses.dataclass(frozen=True)
class _Listed:
    """A row, or its columns `_LISTED`, with the dataset and config of its table."""

    row: Mapping[str, Any]
    origin: tuple[str | os.PathLike[str], str | None] | None = None


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Samples selected by name whose tables have not been read completely yet."""

    groups: Sequence[Sequence[_Listed]]

    @property
    def frameworks(self) -> frozenset[str]:
        """The frameworks of the samples."""
        return frozenset(entry.row["framework"] for group in self.groups for entry in group)

    @property
    def names(self) -> list[tuple[str, str]]:
        """Framework and id of each sample, in the order of `read`."""
        return [
            (entry.row["framework"], entry.row["id"]) for group in self.groups for entry in group
        ]

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    def limited(self, limit: int | None) -> Chosen:
        """Return at most `limit` of the samples, as evenly as possible from each group."""
        shares = _shares(self.groups, len(self) if limit is None else limit)
        return Chosen([group[:share] for group, share in zip(self.groups, shares, strict=True)])

    def of(self, frameworks: Collection[str]) -> Chosen:
        """Return the samples of some frameworks."""
        return Chosen(
            [
                [entry for entry in group if entry.row["framework"] in frameworks]
                for group in self.groups
            ]
        )

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the samples."""
        return frozenset(entry.row["id"] for group in self.groups for entry in group)

    def read(
        self, limit: int | None = None, frameworks: Collection[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return at most `limit` rows like `select_rows`, of some frameworks or all."""
        chosen = self if frameworks is None else self.of(frameworks)
        return _read([entry for group in chosen.limited(limit).groups for entry in group])

    def stream(
        self, columns: Sequence[str] | None = None, limit: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows one by one in the order of their tables, optionally some columns only.

        Only one row group of a file is in memory at a time, unlike with `read`.

        >>> rows = choose("cv", Filters(tag=("small",))).stream(["id", "task"])
        >>> next(rows)["task"]
        'cv'
        """
        entries = [entry for group in self.limited(limit).groups for entry in group]
        keys: dict[Any, set[tuple[str, str]]] = {}
        for entry in entries:
            if entry.origin is None:
                yield dict(entry.row)
            else:
                keys.setdefault(entry.origin, set()).add(_key(entry.row))
        needed = None if columns is None else dict.fromkeys(("id", "framework", *columns))
        for (dataset, config), wanted in keys.items():
            ids = sorted({name for name, _ in wanted})
            for row in read_rows(dataset, config, ids, None if needed is None else [*needed]):
                if _key(row) in wanted:
                    wanted.discard(_key(row))
                    yield _complete(_checked(row)) if columns is None else dict(row)


@raises_only(SchemaError)
def choose(
    samples: Any, filters: Filters | Any = None, *, dataset: str | os.PathLike[str] = "graphnet"
) -> Chosen:
    """Select samples like `select_rows` without a limit, deferring the reading of tables.

    >>> chosen = choose("cv", Filters(tag=("small",)))
    >>> sorted(chosen.frameworks), [row["framework"] for row in chosen.read(2, ["torch"])]
    (['paddle', 'torch'], ['torch', 'torch'])
    """
    filters = as_filters(filters)
    seen: set[tuple[str, str]] = set()
    groups: list[list[_Listed]] = []
    for entries in _list_all(samples, dataset, filters):
        groups.append([])
        for entry in entries:
            if _key(entry.row) not in seen and filters.keeps(entry.row):
                seen.add(_key(entry.row))
                groups[-1].append(entry)
    return Chosen(groups)


def _list_all(
    samples: Any, dataset: str | os.PathLike[str], filters: Filters
) -> Iterator[Iterator[_Listed]]:
    """Yield the entries of each selected item, before filters."""
    is_several = isinstance(samples, Iterable) and not isinstance(samples, str | Mapping)
    for item in samples if is_several else [samples]:
        yield _find(item, dataset, _columns(filters))


def _columns(filters: Filters) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*_LISTED, *columns_of(filters))))


def read_rows(
    dataset: str | os.PathLike[str],
    config: str | None = None,
    ids: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Any:
    """Return an iterable over the rows of all splits, or over the rows with one of `ids`.

    `columns` selects existing columns. Local files are read once and without a cache
    (`read_local_rows`).

    Raises:
        DatasetNotFoundError: the dataset or config does not exist.

    >>> [row["task"] for row in read_rows("graphnet", ids=["torchvision/resnet18"])]
    ['cv']
    """
    place = locate(dataset)
    if isinstance(place, Path):
        return read_local_rows(place, config, ids, columns)
    filters = None if ids is None else [("id", "in", list(ids))]
    with hidden_progress_bars():  # reading a run's tables is faster than drawing a bar
        rows = load_dataset(dataset, config, split="all", filters=filters)
    if columns is None:
        return rows
    return rows.select_columns([name for name in rows.column_names if name in columns])


def list_rows(
    dataset: str | os.PathLike[str], config: str | None, columns: Sequence[str]
) -> list[dict[str, Any]]:
    """Return some columns of all rows of a config; missing columns are null.

    Rows of the Hub are streamed, so that only these columns are downloaded.

    Raises:
        DatasetNotFoundError: the dataset or config does not exist.

    >>> len({row["task"] for row in list_rows("graphnet", "cv", ["id", "task"])})
    1
    """
    if isinstance(locate(dataset), Path):
        rows: Any = read_rows(dataset, config, columns=columns)
    else:
        with hidden_progress_bars():
            splits = load_dataset(dataset, config, None, columns=columns, streaming=True)
        rows = itertools.chain.from_iterable(splits.values())
    return [{name: row.get(name) for name in columns} for row in rows]


def _list(
    dataset: str | os.PathLike[str],
    config: str | None = None,
    columns: Sequence[str] = _LISTED,
) -> list[_Listed]:
    """Return the rows of a table with the columns for filters, by number of operators, then id.

    The order does not depend on splits. Complete graphs are read after selection, because
    converting all of the embedded dataset to Python objects takes minutes.
    """
    rows = [dict(row) for row in read_rows(dataset, config, columns=columns)]
    origin = (dataset, config)
    if any(row.get("num_ops") is None or row.get("family") is None for row in rows):
        rows, origin = [_complete(_checked(row)) for row in read_rows(dataset, config)], None
    return [
        _Listed(row, origin) for row in sorted(rows, key=lambda row: (row["num_ops"], row["id"]))
    ]


def _read(chosen: Sequence[_Listed]) -> list[dict[str, Any]]:
    """Return complete rows in the same order, reading each table once."""
    ids_by_table: dict[Any, set[str]] = {}
    for entry in chosen:
        if entry.origin is not None:
            ids_by_table.setdefault(entry.origin, set()).add(entry.row["id"])
    rows: dict[Any, dict[str, Any]] = {}
    for (dataset, config), ids in ids_by_table.items():
        for row in _read_ids(dataset, config, ids):
            rows.setdefault(((dataset, config), *_key(row)), _complete(_checked(row)))
    return [
        dict(entry.row) if entry.origin is None else rows[(entry.origin, *_key(entry.row))]
        for entry in chosen
    ]


def _read_ids(
    dataset: str | os.PathLike[str], config: str | None, ids: Collection[str]
) -> Iterable[dict[str, Any]]:
    if isinstance(locate(dataset), Path):
        return read_rows(dataset, config, sorted(ids))
    table = read_rows(dataset, config)  # cached since it was listed
    return table.select([place for place, sample_id in enumerate(table["id"]) if sample_id in ids])


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["id"], row["framework"]


def _shares(groups: Sequence[Sequence[Any]], limit: int) -> list[int]:
    """Return the number of rows to take from each group, as even as possible."""
    shares = [0] * len(groups)
    for turn in range(max(map(len, groups), default=0)):
        for index, group in enumerate(groups):
            if turn < len(group) and sum(shares) < limit:
                shares[index] += 1
    return shares


def _find(
    item: Any, dataset: str | os.PathLike[str], columns: Sequence[str] = _LISTED
) -> Iterator[_Listed]:
    if isinstance(item, Sample):
        yield _Listed(_complete(sample_to_row(item), item))
    elif isinstance(item, Mapping):
        yield _Listed(_complete(_checked(item)))
    elif isinstance(item, str) and item.startswith(LIST):
        yield from _find_listed(Path(item.removeprefix(LIST)).expanduser(), dataset)
    elif isinstance(item, os.PathLike) or (isinstance(item, str) and is_path(item)):
        yield from _find_path(Path(item).expanduser(), columns)
    elif isinstance(item, str):
        yield from _find_name(item, dataset, columns)
    elif isinstance(item, Iterable):
        for part in item:
            yield from _find(part, dataset, columns)
    else:
        raise RunError(
            f"Samples cannot be taken from a `{type(item).__name__}`. Pass a dataset of "
            "`load_dataset`, its rows, samples, names or paths."
        )


def _load_ids(dataset: str | os.PathLike[str]) -> list[str]:
    place = locate(dataset)
    if isinstance(place, Path):
        return read_local_ids(place)
    with hidden_progress_bars():
        return load_dataset(dataset, split="all", columns=["id"])["id"][:]


def is_path(text: str) -> bool:
    """Return whether a string is a path, not the name of a config or a sample.

    >>> is_path("./mine"), is_path("cv")
    (True, False)
    """
    return text.startswith((".", "/", "~")) or text.endswith(".parquet")


def _find_path(path: Path, columns: Sequence[str]) -> Iterator[_Listed]:
    if not path.exists():
        raise DatasetNotFoundError(f"The path `{path}` does not exist. Check it.")
    is_table = path.is_file() or next(path.rglob("*.parquet"), None) is not None
    if is_table:
        yield from _list(path, columns=columns)
        return
    directories = sorted({record.parent for record in path.rglob("graph_net.json")})
    if not directories:
        raise DatasetNotFoundError(
            f"`{path}` has neither Parquet files nor a GraphNet sample (`graph_net.json`). Choose "
            "another path."
        )
    from ..directory import read_directory

    for directory in directories:
        yield from _find(read_directory(directory), path)


def _find_name(
    name: str, dataset: str | os.PathLike[str], columns: Sequence[str]
) -> Iterator[_Listed]:
    if name == str(dataset):
        yield from _list(dataset, columns=columns)
    elif name == ALL or name in CONFIGS:
        if name in CONFIGS and not CONFIGS[name].table.holds_samples:
            raise RunError(
                f"The config `{name}` contains {CONFIGS[name].table.rows}, which cannot be run. "
                f"Choose a config of graphs: {', '.join(_configs_of_graphs())}."
            )
        yield from _list(dataset, name, columns)
    else:
        rows = _find_ids([name], dataset)
        if not rows:
            raise DatasetNotFoundError(
                f"`{name}` is neither a config nor the id of a sample of `{dataset}`."
                f"{did_you_mean(name, _known_names(dataset))} The configs are "
                f"{', '.join(_configs_of_graphs())}; list ids with `graphnet list`; start a path "
                "with `./` or `/`; choose another dataset with `--dataset org/name`."
            )
        yield from _find(rows, dataset)


def describe_samples(
    dataset: str | os.PathLike[str], ids: Sequence[str], columns: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the id and some columns of the samples with one of `ids`, wherever they are stored.

    >>> describe_samples("graphnet", ["torch/resnet-18", "unknown"], ["task"])
    [{'id': 'torch/resnet-18', 'task': 'cv'}]
    """
    return _find_ids(ids, dataset, ["id", *columns])


def _find_ids(
    ids: Sequence[str], dataset: str | os.PathLike[str], columns: Sequence[str] | None = None
) -> list[Mapping[str, Any]]:
    """Return the rows with one of `ids`.

    Ids without a whole graph are searched among parts of graphs and compiler bugs.
    """
    rows = list(read_rows(dataset, None, ids, columns))
    for config in CONFIGS.values():
        missing = sorted({*ids} - {row["id"] for row in rows})
        is_apart = config.table in (SUBGRAPHS, COMPILER_BUGS)
        if missing and is_apart and any("/" in name for name in missing):
            with contextlib.suppress(DatasetNotFoundError):  # the config is optional
                rows += read_rows(dataset, config.name, missing, columns)
    return rows


@raises_only(RunError)
def load_sample(
    sample_id: str,
    dataset: str | os.PathLike[str] = "graphnet",
    *,
    framework: str | None = None,
) -> Sample:
    """Return one sample by its id, without loading the rest of the dataset.

    `dataset` is a name or path as for `load_dataset`. `framework` is needed only if the id exists
    for several frameworks.

    Raises:
        DatasetNotFoundError: the dataset has no such sample; the message suggests similar ids.
        RunError: the id exists for several frameworks.

    >>> sample = load_sample("torch/resnet-18")
    >>> sample.id, sample.framework, sample.task
    ('torch/resnet-18', 'torch', 'cv')
    """
    rows = _find_ids([sample_id], dataset)
    rows = [row for row in rows if framework in (None, row["framework"])]
    if not rows:
        ids = [name for name in _known_names(dataset) if name not in _configs_of_graphs()]
        raise DatasetNotFoundError(
            f"`{sample_id}` is not the id of a sample of `{dataset}`."
            f"{did_you_mean(sample_id, ids)} `graphnet list` shows the ids."
        )
    frameworks = sorted({str(row["framework"]) for row in rows})
    if len(frameworks) > 1:
        raise RunError(
            f"`{sample_id}` exists for {' and '.join(frameworks)}. Choose one with "
            f"`framework={frameworks[0]!r}`."
        )
    return Sample.from_row(rows[0])


def _find_listed(path: Path, dataset: str | os.PathLike[str]) -> Iterator[_Listed]:
    """Yield the samples with the ids in a file, in its order; lines with # are comments."""
    try:
        lines = [line.strip() for line in read_bytes(path).decode().splitlines()]
    except FileNotFoundError as error:
        raise DatasetNotFoundError(
            f"The file `{path}` of sample ids does not exist. Write one with "
            "`graphnet select --out`."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetNotFoundError(
            f"The ids in `{path}` cannot be read: {error}. Write them with `graphnet select --out`."
        ) from error
    ids = list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if not ids:
        raise DatasetNotFoundError(
            f"`{path}` has no sample ids. Write some with `graphnet select --out`."
        )
    entries: dict[str, list[_Listed]] = {}
    for entry in _find(_find_ids(ids, dataset), dataset):
        entries.setdefault(entry.row["id"], []).append(entry)
    for sample_id in ids:
        if sample_id not in entries:
            raise DatasetNotFoundError(
                f"`{sample_id[:200]}` in `{path}` is not the id of a sample of "
                f"`{dataset}`.{did_you_mean(sample_id, _known_names(dataset))} List ids with "
                "`graphnet list`, or choose another dataset with `--dataset`."
            )
        yield from entries[sample_id]


def _known_names(dataset: str | os.PathLike[str]) -> list[str]:
    """Return the configs and ids to suggest; from the Hub only ids are fetched."""
    try:
        ids = _load_ids(dataset)
    except GraphNetError:
        ids = []
    return [*_configs_of_graphs(), *ids]


def _configs_of_graphs() -> list[str]:
    return [ALL, *(name for name, config in CONFIGS.items() if config.table.holds_samples)]


def _checked(row: Mapping[str, Any]) -> dict[str, Any]:
    missing = [name for name in ("id", "ops", "inputs", "outputs") if name not in row]
    if missing:
        raise RunError(
            f"A row lacks the column `{missing[0]}`, which is needed to run it. Load the dataset "
            "with all columns (`columns=None`)."
        )
    return dict(row)


def _complete(row: dict[str, Any], sample: Sample | None = None) -> dict[str, Any]:
    """Fill in missing hashes and the family."""
    if any(row.get(name) is None for name in ("family", "structure_hash", "signature_hash")):
        derived = hash_columns(sample or sample_from_row(row))
        row |= {name: derived[name] for name in derived if row.get(name) is None}
    return row
