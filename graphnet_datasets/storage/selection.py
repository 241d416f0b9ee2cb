"""Which samples a run is about: names, paths, rows or samples."""

from __future__ import annotations

import contextlib
import dataclasses
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
from ..verbosity import hidden_progress_bars
from .filters import Filters, as_filters, columns_of
from .loading import load_dataset, locate
from .local_rows import read_local_ids, read_local_rows

LIST = "@"
"""Begins the name of a file with ids of samples, one a line."""

_LISTED = (
    *("id", "framework", "task", "subtask", "kind", "source", "tags", "method", "family"),
    *("num_ops", "num_params"),
)
"""Columns that filters and the order of a table ask for."""


@raises_only(SchemaError)
def select_rows(
    what: Any, filters: Filters | Any = None, *, dataset: str | os.PathLike[str] = "graphnet"
) -> list[dict[str, Any]]:
    """Return rows of the `graphs` table, with hashes and family, that a run is about.

    `what` is a name, a path, a sample, a row, or several of these (a `datasets.Dataset` is several
    rows). A name is a config (`cv`; `excluded` for the graphs that failed a check, `fusible` for
    parts), a sample's id (`timm/resnet18`) or the name itself of `dataset`. A path, which starts
    with `.`, `/` or `~` or ends in `.parquet`, is a GraphNet sample directory, a directory of them,
    a dataset directory or a Parquet file. Of a config, a dataset or a file, all splits are taken,
    by number of operators. `@ids.txt` stands for the ids in a file, one a line, as
    `graphnet select` writes them. A sample that is named twice comes once. `filters` are `Filters`,
    or conditions as `load_dataset` takes them.

    Raises:
        DatasetNotFoundError: nothing has the name.
        RunError: something is neither a name nor a sample, or the rows lack columns.
    """
    filters = as_filters(filters)
    return choose(what, filters, dataset=dataset).read(filters.limit)


@dataclasses.dataclass(frozen=True)
class _Found:
    """A row, or the columns `_LISTED` of one, with the dataset and the config where it stands."""

    row: Mapping[str, Any]
    stands_in: tuple[str | os.PathLike[str], str | None] | None = None


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Samples that were asked for, by name, before those that stand in tables are read."""

    groups: Sequence[Sequence[_Found]]

    @property
    def frameworks(self) -> frozenset[str]:
        """The frameworks that the samples are of."""
        return frozenset(found.row["framework"] for group in self.groups for found in group)

    def read(
        self, limit: int | None = None, frameworks: Collection[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return rows as `select_rows` does: no more than a limit, of some frameworks or of all."""
        groups = [
            [each for each in group if frameworks is None or each.row["framework"] in frameworks]
            for group in self.groups
        ]
        shares = _shares(groups, sum(map(len, groups)) if limit is None else limit)
        return _read(
            [each for group, share in zip(groups, shares, strict=True) for each in group[:share]]
        )


@raises_only(SchemaError)
def choose(
    what: Any, filters: Filters | Any = None, *, dataset: str | os.PathLike[str] = "graphnet"
) -> Chosen:
    """Return what `select_rows` would read without a limit; it raises the same.

    >>> chosen = choose("cv", Filters(tag=("small",)))
    >>> sorted(chosen.frameworks), [row["framework"] for row in chosen.read(2, ["torch"])]
    (['paddle', 'torch'], ['torch', 'torch'])
    """
    filters = as_filters(filters)
    columns = (*_LISTED, *columns_of(filters))
    several = isinstance(what, Iterable) and not isinstance(what, str | Mapping)
    seen: set[tuple[str, str]] = set()
    groups: list[list[_Found]] = []
    for each in what if several else [what]:
        groups.append([])
        for found in _find(each, dataset, columns):
            if _key(found.row) not in seen and filters.keeps(found.row):
                seen.add(_key(found.row))
                groups[-1].append(found)
    return Chosen(groups)


def read_rows(
    dataset: str | os.PathLike[str],
    config: str | None = None,
    ids: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Any:
    """Return something that yields the rows of all splits, or those with an id of several.

    Of `columns` a row has those that the table has. Of files on this machine they are read once and
    are in no cache (`read_local_rows`).

    Raises:
        DatasetNotFoundError: there is no such dataset or config.

    >>> [row["task"] for row in read_rows("graphnet", ids=["torchvision/resnet18"])]
    ['cv']
    """
    place = locate(dataset)
    if isinstance(place, Path):
        return read_local_rows(place, config, ids, columns)
    filters = None if ids is None else [("id", "in", list(ids))]
    with hidden_progress_bars():  # the tables of a run are read faster than a bar of that is
        rows = load_dataset(dataset, config, split="all", filters=filters)
    if columns is None:
        return rows
    return rows.select_columns([name for name in rows.column_names if name in columns])


def _list(
    dataset: str | os.PathLike[str],
    config: str | None = None,
    columns: Sequence[str] = _LISTED,
) -> list[_Found]:
    """Return what filters ask of a table's rows, by number of operators, then by id.

    However a table is split, this is one order. Graphs themselves are read when they are chosen:
    to make Python's objects of all of the embedded dataset takes minutes.
    """
    rows = [dict(row) for row in read_rows(dataset, config, columns=columns)]
    stands_in = (dataset, config)
    if any(row.get("num_ops") is None or row.get("family") is None for row in rows):
        rows, stands_in = [_complete(_checked(row)) for row in read_rows(dataset, config)], None
    return [
        _Found(row, stands_in) for row in sorted(rows, key=lambda row: (row["num_ops"], row["id"]))
    ]


def _read(chosen: Sequence[_Found]) -> list[dict[str, Any]]:
    """Return the rows as a whole, in the same order; each table is read once."""
    wanted: dict[Any, set[str]] = {}
    for found in chosen:
        if found.stands_in is not None:
            wanted.setdefault(found.stands_in, set()).add(found.row["id"])
    rows: dict[Any, dict[str, Any]] = {}
    for (dataset, config), ids in wanted.items():
        for row in _read_ids(dataset, config, ids):
            rows.setdefault(((dataset, config), *_key(row)), _complete(_checked(row)))
    return [
        dict(found.row) if found.stands_in is None else rows[(found.stands_in, *_key(found.row))]
        for found in chosen
    ]


def _read_ids(
    dataset: str | os.PathLike[str], config: str | None, ids: Collection[str]
) -> Iterable[dict[str, Any]]:
    if isinstance(locate(dataset), Path):
        return read_rows(dataset, config, sorted(ids))
    table = read_rows(dataset, config)  # as listing it has left it in the cache
    return table.select([place for place, each in enumerate(table["id"]) if each in ids])


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["id"], row["framework"]


def _shares(groups: Sequence[Sequence[Any]], limit: int) -> list[int]:
    """Return how many to take of each group, as evenly as they allow."""
    shares = [0] * len(groups)
    for turn in range(max(map(len, groups), default=0)):
        for index, group in enumerate(groups):
            if turn < len(group) and sum(shares) < limit:
                shares[index] += 1
    return shares


def _find(
    what: Any, dataset: str | os.PathLike[str], columns: Sequence[str] = _LISTED
) -> Iterator[_Found]:
    if isinstance(what, Sample):
        yield _Found(_complete(sample_to_row(what), what))
    elif isinstance(what, Mapping):
        yield _Found(_complete(_checked(what)))
    elif isinstance(what, str) and what.startswith(LIST):
        yield from _find_listed(Path(what.removeprefix(LIST)).expanduser(), dataset)
    elif isinstance(what, os.PathLike) or (isinstance(what, str) and is_path(what)):
        yield from _find_path(Path(what).expanduser(), columns)
    elif isinstance(what, str):
        yield from _find_name(what, dataset, columns)
    elif isinstance(what, Iterable):
        for part in what:
            yield from _find(part, dataset, columns)
    else:
        raise RunError(
            f"`{type(what).__name__}` is not a sample. Run a dataset of `load_dataset`, rows of "
            "one, samples, names or paths."
        )


def _load_ids(dataset: str | os.PathLike[str]) -> list[str]:
    place = locate(dataset)
    if isinstance(place, Path):
        return read_local_ids(place)
    with hidden_progress_bars():
        return load_dataset(dataset, split="all", columns=["id"])["id"][:]


def is_path(text: str) -> bool:
    """Tell whether a text is a path, not the name of a config or a sample.

    >>> is_path("./mine"), is_path("cv")
    (True, False)
    """
    return text.startswith((".", "/", "~")) or text.endswith(".parquet")


def _find_path(path: Path, columns: Sequence[str]) -> Iterator[_Found]:
    if not path.exists():
        raise DatasetNotFoundError(f"There is nothing at `{path}`.")
    is_table = path.is_file() or next(path.rglob("*.parquet"), None) is not None
    if is_table:
        yield from _list(path, columns=columns)
        return
    directories = sorted({each.parent for each in path.rglob("graph_net.json")})
    if not directories:
        raise DatasetNotFoundError(
            f"`{path}` holds neither Parquet files nor a GraphNet sample (`graph_net.json`)."
        )
    from ..directory import read_directory

    for directory in directories:
        yield from _find(read_directory(directory), path)


def _find_name(
    name: str, dataset: str | os.PathLike[str], columns: Sequence[str]
) -> Iterator[_Found]:
    if name == str(dataset):
        yield from _list(dataset, columns=columns)
    elif name == ALL or name in CONFIGS:
        if name in CONFIGS and not CONFIGS[name].table.holds_samples:
            raise RunError(
                f"The config `{name}` holds {CONFIGS[name].table.rows}, which cannot be run. "
                f"Choose a config of graphs: {', '.join(_configs_of_graphs())}."
            )
        yield from _list(dataset, name, columns)
    else:
        found = _find_ids([name], dataset)
        if not found:
            raise DatasetNotFoundError(
                f"`{name}` is neither a config nor the id of a sample of `{dataset}`."
                f"{did_you_mean(name, _known_names(dataset))} The configs are "
                f"{', '.join(_configs_of_graphs())}; `graphnet list` shows the ids; a path starts "
                "with `./` or `/`; another dataset is chosen with `--dataset org/name`."
            )
        yield from _find(found, dataset)


def _find_ids(ids: Sequence[str], dataset: str | os.PathLike[str]) -> list[Mapping[str, Any]]:
    """Return the rows with one of `ids`.

    Ids that no whole graph has are looked up among parts of graphs and among bugs of compilers.
    """
    rows = list(read_rows(dataset, ids=ids))
    for config in CONFIGS.values():
        missing = sorted({*ids} - {row["id"] for row in rows})
        is_apart = config.table in (SUBGRAPHS, COMPILER_BUGS)
        if missing and is_apart and any("/" in name for name in missing):
            with contextlib.suppress(DatasetNotFoundError):  # not every dataset has them
                rows += read_rows(dataset, config.name, missing)
    return rows


def _find_listed(path: Path, dataset: str | os.PathLike[str]) -> Iterator[_Found]:
    """Yield the samples whose ids stand in a file, in its order; lines with a # are no ids."""
    try:
        lines = [line.strip() for line in read_bytes(path).decode().splitlines()]
    except FileNotFoundError as error:
        raise DatasetNotFoundError(
            f"There is no file `{path}` with ids of samples. `graphnet select --out` writes one."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetNotFoundError(f"The ids in `{path}` cannot be read: {error}.") from error
    ids = list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if not ids:
        raise DatasetNotFoundError(f"There is no id of a sample in `{path}`.")
    found: dict[str, list[_Found]] = {}
    for each in _find(_find_ids(ids, dataset), dataset):
        found.setdefault(each.row["id"], []).append(each)
    for each in ids:
        if each not in found:
            raise DatasetNotFoundError(
                f"`{each[:200]}`, which stands in `{path}`, is not the id of a sample of "
                f"`{dataset}`.{did_you_mean(each, _known_names(dataset))} `graphnet list` shows "
                "the ids; another dataset is chosen with `--dataset`."
            )
        yield from found[each]


def _known_names(dataset: str | os.PathLike[str]) -> list[str]:
    """Return the configs and ids that may have been meant; of the Hub only its ids are fetched."""
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
            f"A row lacks the column `{missing[0]}`, so that it cannot be run. Load the dataset "
            "with all its columns (`columns=None`)."
        )
    return dict(row)


def _complete(row: dict[str, Any], sample: Sample | None = None) -> dict[str, Any]:
    """Fill the hashes and the family where nobody has computed them."""
    if any(row.get(name) is None for name in ("family", "structure_hash", "signature_hash")):
        derived = hash_columns(sample or sample_from_row(row))
        row |= {name: derived[name] for name in derived if row.get(name) is None}
    return row
