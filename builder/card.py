"""The card of the embedded dataset: metadata, columns, usage and limitations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphnet_datasets.schema import TABLES, Table
from graphnet_datasets.schema.columns import describe_columns

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
        "size_categories": [next(name for most, name in _SIZES if len(rows) < most)],
        "tags": ["computational-graphs", "compilers", "torch", "paddle", "performance"],
    }


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
