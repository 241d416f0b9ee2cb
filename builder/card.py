"""The card of the embedded dataset: metadata, counts, columns, usage and limitations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import yaml

from graphnet_datasets.analysis.splits import SPLITS
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.schema import TABLES, Table
from graphnet_datasets.schema.columns import describe_columns
from graphnet_datasets.schema.tables import EXCLUDED, TRUNCATED

COUNTED = (
    "num_ops", "split", "family", "split_group", "source", "is_reimplementation", "license",
    "library", "framework", "dtype", "mode", "is_dynamic", "weights_origin",
)  # fmt: skip
"""Columns of the graphs from which the card is written."""

_USE = """## Reading it with other libraries

```python
import datasets, duckdb, polars

cv = datasets.load_dataset("graphnet", "cv", split="train")  # beside a copy of this folder
small = polars.scan_parquet("graphnet/cv/*.parquet").filter(polars.col("num_ops") < 100).collect()
largest = duckdb.sql("SELECT id, num_ops FROM 'graphnet/cv/*.parquet' ORDER BY num_ops DESC")
```

`graphnet export graphnet` writes such a copy. Read one config per pattern: the folder also contains
this README, and the configs of parts of graphs (`sole_op`, `fusible`, `typical`) and of known
compiler bugs (`compiler_bugs`) have more columns.

## How it was made

Each graph is captured from one line of a catalog (`catalog_line`), in a separate process: the model
is built from its configuration with random weights and called once with example inputs. Duplicate
graphs are removed. Derived columns are computed from the graph.

## Limits

Weights are random, so the outputs have no meaning; the dataset is about the computation. Weight
statistics are those of initialised models, not of trained ones: measured on drawn weights if
`weights_origin` is `initialised`, otherwise computed from the initialisers. `calibrated_inputs`
replaces statistics with which the outputs would vanish or overflow. Graphs tagged `truncated` have
fewer layers than their models. Costs are counted, not measured, and null if sizes depend on data.

## Citation

```bibtex
@misc{graphnet2025,
  title = {GraphNet technical report},
  url = {https://arxiv.org/abs/2510.24035},
  eprint = {2510.24035},
  archivePrefix = {arXiv},
  year = {2025}
}
```
"""

_LOGS = """## Models without a graph

`failures` has a row for each catalog line without a graph, with the failed stage and the error
message, and for each graph that was left out because it would have linked two splits. `duplicates`
has a row for each captured graph that equals a graph of the dataset. `all` contains neither.
"""

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))


def metadata(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the YAML entries that describe the dataset.

    >>> metadata([{"license": "MIT"}, {"license": "Apache-2.0"}])["license"]
    ['apache-2.0', 'mit']
    """
    return {
        "pretty_name": "GraphNet Datasets",
        "license": sorted({row["license"].lower() for row in rows if row["license"]}),
        "task_categories": ["graph-ml", "tabular-regression"],
        "size_categories": [next(name for most, name in _SIZES if len(rows) < most)],
        "tags": [
            "computational-graphs", "compilers", "torch", "paddle", "performance",
            "arxiv:2510.24035",
        ],
    }  # fmt: skip


def evaluation() -> str:
    """Return the text of `eval.yaml`, which registers a dataset of the Hub as a benchmark.

    The Hub's page on evaluation results describes the fields: a task is a config and a split.
    """
    tasks = [{"id": task, "config": task, "split": "test"} for task in TASKS]
    description = (
        "A compiler runs the graphs of real models. Each output is compared with eager and with "
        "float64, and both are timed. The scores are S(t) and ES(t) of the GraphNet report."
    )
    content = {
        "name": "GraphNet Datasets",
        "description": description,
        "evaluation_framework": "graphnet-datasets",
        "tasks": tasks,
    }
    return yaml.safe_dump(content, sort_keys=False, width=100)


def overview(rows: Sequence[Mapping[str, Any]], share_leaking: float | None) -> str:
    """Return the title, the counts of graphs, their known biases, and their sources.

    `rows` are all graphs, with the columns of `COUNTED` and the `config` that contains them. The
    counts are those of `load_dataset`. `share_leaking` is that of `measures.share_leaking`.
    """
    whole = [row for row in rows if row["config"] in TASKS]
    families = len({row["family"] for row in whole})
    return f"""# GraphNet Datasets

{len(whole):,} computational graphs of {families:,} families, captured from models that were built
from their configurations with random weights. A row is a graph. Weights are not stored, but their
shapes and statistics are.

{_counts(rows)}

`all` contains the configs of the six tasks. Graphs of models with fewer layers than published are
in `truncated`, and graphs that failed a check in `excluded`. Graphs of one model form a group
(`split_group`), and a group is in one split. Versions of the dataset share ids, but not always
splits: train and test on the same version. Graphs with the tag `small` take milliseconds on one
CPU core. The configs `sole_op`, `fusible` and `typical` contain the distinct parts of graphs.

```python
from graphnet_datasets import Sample, load_dataset, materialize

row = load_dataset("graphnet", "cv")["train"][0]
module = materialize(Sample.from_row(row), weights="parameters")
```

## Known biases

{_biases(whole, share_leaking)}

## Sources and licences

{_sources(rows)}
"""


def effective_number(labels: Iterable[Hashable]) -> float:
    """Return the number of equally frequent labels with the same entropy (M. O. Hill, 1973).

    >>> effective_number("aabb"), round(effective_number("aaab"), 2)
    (2.0, 1.75)
    """
    counts = Counter(labels)
    total = counts.total()
    return math.exp(-sum(n / total * math.log(n / total) for n in counts.values())) if total else 0


def _counts(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        f"| config | graphs | families | groups | {' | '.join(SPLITS)} | operators |",
        f"|---|---|---|---|{'---|' * len(SPLITS)}---|",
    ]
    for config in (*TASKS, TRUNCATED, EXCLUDED):
        among = [row for row in rows if row["config"] == config]
        if among:
            sizes = [row["num_ops"] for row in among]
            splits = Counter(row["split"] for row in among)
            cells = [
                len(among), len({row["family"] for row in among}),
                len({row["split_group"] for row in among}), *(splits[split] for split in SPLITS),
            ]  # fmt: skip
            numbers = " | ".join(f"{cell:,}" for cell in cells)
            lines.append(f"| `{config}` | {numbers} | {min(sizes):,} to {max(sizes):,} |")
    return "\n".join(lines)


def _biases(rows: Sequence[Mapping[str, Any]], share_leaking: float | None) -> str:
    def share(column: str, *values: Any) -> str:
        return f"{sum(row[column] in values for row in rows) / max(1, len(rows)):.1%}"

    families = effective_number(row["family"] for row in rows)
    groups = effective_number(row["split_group"] for row in rows)
    libraries = Counter(row["library"] for row in rows)
    largest, count = max(libraries.items(), key=lambda item: item[1], default=("", 0))
    facts = [
        f"Families differ in size: they are as diverse as {families:,.0f} families of equal size, "
        f"and the groups as {groups:,.0f} groups of equal size.",
        f"{count / max(1, len(rows)):.1%} of the graphs come from `{largest}`, and "
        f"{share('framework', 'paddle')} are of paddle.",
        f"{share('is_reimplementation', True)} are of architectures that this project wrote.",
        "All weights are random. Their statistics follow from the initialisers; for "
        f"{share('weights_origin', 'initialised')} of the graphs they were measured on drawn "
        "weights.",
        f"{share('dtype', 'float32')} are in float32, {share('mode', 'train')} in train mode, and "
        f"{share('is_dynamic', True)} have symbolic dimensions.",
    ]
    if share_leaking is not None:
        facts.append(
            f"{share_leaking:.1%} of the held-out graphs have a near copy among the training "
            "graphs: as many parameters (within 1%), and core operators with a cosine of at "
            "least 0.98."
        )
    return "\n".join(f"- {fact}" for fact in facts)


def _sources(rows: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter((row["source"] or "", row["license"] or "unknown") for row in rows)
    lines = ["| source | licence | graphs |", "|---|---|---|"]
    lines += [f"| {source} | {name} | {n:,} |" for (source, name), n in sorted(counts.items())]
    return "\n".join(lines)


def text(tables: Iterable[Table]) -> str:
    """Return the text below the counts: usage, build, limitations, citation, and all columns."""
    tables = tuple(tables)
    parts = [_USE, *(_columns(table) for table in tables)]
    if any(table.name == "failures" for table in tables):
        parts.append(_LOGS)
    return "\n".join(parts)


def _columns(table: Table) -> str:
    is_extension = table.holds_samples and table.name != "graphs"
    shared = TABLES["graphs"].schema.names if is_extension else ()
    lines = [f"## Columns of `{table.name}`", ""]
    if is_extension:
        lines += ["The columns of `graphs`, and:", ""]
    lines += ["| Column | Type | Meaning |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {kind} | {meaning} |"
        for name, kind, meaning in describe_columns(table.columns)
        if name.partition(".")[0] not in shared
    ]
    return "\n".join([*lines, ""])
