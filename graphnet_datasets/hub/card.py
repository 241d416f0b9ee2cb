"""The dataset card: configs, columns and figures, all computed from the data.

A push rewrites only the entries of existing folders and the figures between two markers. Everything
else that the owner of a repository wrote is kept.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..schema import EXCLUDED, TABLES, TRUNCATED, Table, config_named
from ..schema.tables import GRAPHS
from ..storage.layout import describe_configs
from ..terminal import printable_line
from .plot import draw_sizes

PICTURE = "graphs.svg"
BEGIN = "<!-- figures: written anew by every push -->"
END = "<!-- end of figures -->"
MAX_SOURCES = 30
"""Sources listed in the card; further sources are combined in a last line."""


def make_card(
    readme: str | None, repo_id: str, files: Mapping[str, str], tables: Mapping[str, pa.Table]
) -> dict[str, bytes]:
    """Return the README, and the histogram if there are graphs, by path in the repository.

    `files` are the shards with their sha256. `tables` contains the scalar columns of all shards per
    table, with config and split. `readme` is the existing README. The result never has `splits`,
    because `datasets` would then reject files appended later.
    """
    from huggingface_hub import DatasetCard, DatasetCardData

    graphs = tables[GRAPHS.name]
    apart = {
        name: graphs.filter(pc.field("config") == name).num_rows for name in (EXCLUDED, TRUNCATED)
    }
    graphs = graphs.filter(~pc.field("config").isin([*apart]))
    others = [
        (table, tables[name])
        for name, table in TABLES.items()
        if table is not GRAPHS and name in tables
    ]
    card = DatasetCard(readme, ignore_metadata_errors=False) if readme else None
    present: dict[str, Any] = card.data.to_dict() if card else {}
    data = {
        "pretty_name": repo_id.partition("/")[2],
        "tags": ["graphnet-datasets"],
        **present,
        "size_categories": [_size_category(graphs.num_rows)],
        "configs": _configs(present.get("configs"), files),
    }
    data["dataset_info"] = _columns(present.get("dataset_info"), data["configs"])
    body = card.text if card and card.text.strip() else _introduction(repo_id)
    figures = f"{BEGIN}\n\n{_figures(graphs, others, apart)}\n\n{END}"
    before, begin, rest = body.partition(BEGIN)
    _, end, after = rest.partition(END)
    body = f"{before}{figures}{after}" if begin and end else f"{body.rstrip()}\n\n{figures}"
    text = f"---\n{DatasetCardData(**data).to_yaml()}\n---\n{body.strip()}\n"
    content = {"README.md": text.encode()}
    if graphs.num_rows:
        sizes = {name: part["num_ops"].to_pylist() for name, part in _by(graphs, "config").items()}
        content[PICTURE] = draw_sizes(sizes).encode()
    return content


def _configs(present: Any, files: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return our configs and those added by hand, one of them as the default."""
    ours = describe_configs(files)
    names = {config["config_name"] for config in ours}
    entries = [entry for entry in present or () if isinstance(entry, dict)]
    others = [entry for entry in entries if entry.get("config_name") not in names]
    chosen = [entry.get("config_name") for entry in entries if entry.get("default")]
    # If the first push contained only runs, choose the default again for graphs.
    if (
        chosen
        and config_named(str(chosen[0])).table is GRAPHS
        and chosen[0] in names | {entry.get("config_name") for entry in others}
    ):
        for config in ours:
            config.pop("default", None)
            if config["config_name"] == chosen[0]:
                config["default"] = True
    return [*ours, *others]


def _columns(present: Any, configs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Configs of a table share one list object, which YAML writes once.
    columns = {name: table.features()._to_yaml_list() for name, table in TABLES.items()}
    others = {
        entry.get("config_name"): {
            key: value
            for key, value in entry.items()
            if key not in ("splits", "download_size", "dataset_size")
        }
        for entry in (present if isinstance(present, list) else ())
        if isinstance(entry, dict)
    }
    result = []
    for config in configs:
        name = config["config_name"]
        if "description" in config and str(config["description"]).startswith("content "):
            result.append({"config_name": name, "features": columns[config_named(name).table.name]})
        elif name in others:
            result.append(others[name])
    return result


def _introduction(repo_id: str) -> str:
    return f"""# {repo_id.partition("/")[2]}

Computational graphs of real models, one row a graph, in the format of GraphNet Datasets. Weights
are not stored; their shapes and statistics are.

```python
from graphnet_datasets import Sample, load_dataset

rows = load_dataset("{repo_id}", split="train", filters=[("num_ops", "<", 200)])
sample = Sample.from_row(rows[0])
```

`graphnet push` adds graphs and skips those that the dataset already contains.
"""


def _figures(
    graphs: pa.Table, others: list[tuple[Table, pa.Table]], apart: Mapping[str, int]
) -> str:
    parts = []
    if graphs.num_rows:
        num_families = _num_families(graphs)
        parts += [
            f"{graphs.num_rows:,} graphs of {num_families:,} families.",
            f"![Histogram of the number of operators in a graph, by config]({PICTURE})",
            _table_of_configs(graphs),
            _table_of_sources(graphs),
        ]
    if apart[EXCLUDED]:
        parts.append(
            f"{apart[EXCLUDED]:,} more graphs failed a check. They are in the config `{EXCLUDED}` "
            "alone, with the reasons in `why_excluded`."
        )
    if apart[TRUNCATED]:
        parts.append(
            f"{apart[TRUNCATED]:,} more graphs have fewer layers than their models were published "
            f"with. They are in the config `{TRUNCATED}` alone, and in no count."
        )
    for table, rows in others:
        if rows.num_rows:
            parts += [f"{rows.num_rows:,} {table.rows}.", _table_of_counts(table, rows)]
    return "\n\n".join(parts) or "There are no tables yet."


def _table_of_configs(graphs: pa.Table) -> str:
    lines = [
        "| config | split | graphs | families | frameworks | operators (median) | parameters "
        "(median) |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    for config, part in _by(graphs, "config").items():
        for split, rows in _by(part, "split").items():
            families = _num_families(rows)
            frameworks = ", ".join(sorted(rows["framework"].unique().to_pylist()))
            lines.append(
                f"| {config} | {split} | {rows.num_rows:,} | {families:,} | {frameworks} | "
                f"{_spread(rows['num_ops'])} | {_spread(rows['num_params'])} |"
            )
    return "\n".join(lines)


def _table_of_sources(graphs: pa.Table) -> str:
    lines = ["| source | licence | graphs | families |", "|---|---|---:|---:|"]
    parts = sorted(_by(graphs, "source").items(), key=lambda item: (-item[1].num_rows, item[0]))
    for source, rows in parts[:MAX_SOURCES]:
        licences = ", ".join(
            sorted({_cell(licence) for licence in rows["license"].unique().to_pylist()})
        )
        families = _num_families(rows)
        lines.append(f"| {_cell(source)} | {licences} | {rows.num_rows:,} | {families:,} |")
    if len(parts) > MAX_SOURCES:
        rest = sum(rows.num_rows for _, rows in parts[MAX_SOURCES:])
        lines.append(f"| {len(parts) - MAX_SOURCES} more | | {rest:,} | |")
    return "\n".join(lines)


def _table_of_counts(table: Table, rows: pa.Table) -> str:
    names = table.counted_by
    counts = rows.group_by([*names]).aggregate([([], "count_all")])
    lines = [f"| {' | '.join((*names, table.name))} |", f"|{'---|' * len(names)}---:|"]
    for row in sorted(counts.to_pylist(), key=lambda row: tuple(map(str, row.values()))):
        cells = (_cell(row[name]) for name in names)
        lines.append(f"| {' | '.join(cells)} | {row['count_all']:,} |")
    return "\n".join(lines)


def _by(table: pa.Table, column: str) -> dict[str, pa.Table]:
    """Return the rows per value of a column, sorted by value; null counts as empty."""
    indices: dict[str, list[int]] = {}
    for index, value in enumerate(table[column].to_pylist()):
        indices.setdefault(value or "", []).append(index)
    return {value: table.take(pa.array(indices[value], pa.int64())) for value in sorted(indices)}


def _num_families(graphs: pa.Table) -> int:
    return len(graphs["family"].unique())


def _spread(numbers: pa.ChunkedArray) -> str:
    values = [number for number in numbers.to_pylist() if number is not None]
    if not values:
        return "not stated"
    return f"{min(values):,} to {max(values):,} ({statistics.median_low(values):,})"


def _cell(text: Any) -> str:
    """Escape an untrusted string as a table cell in Markdown."""
    plain = printable_line(" ".join(str(text or "not stated").split()))[:60]
    for sign in "\\|`*_[]<>!":
        plain = plain.replace(sign, f"\\{sign}" if sign not in "<>" else "")
    return plain


def _size_category(num_rows: int) -> str:
    for limit, name in ((1e3, "n<1K"), (1e4, "1K<n<10K"), (1e5, "10K<n<100K")):
        if num_rows < limit:
            return name
    return "100K<n<1M" if num_rows < 1e6 else "1M<n<10M"
