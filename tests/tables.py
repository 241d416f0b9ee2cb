"""Small tables and dataset directories for the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphnet_datasets.sample import Input, Op, Provenance, Sample, Statistics, Value
from graphnet_datasets.sample.arguments import Ref
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import write_table


def chain(
    sample_id: str,
    num_ops: int,
    task: Any = "other",
    source: str = "test",
    tags: tuple[str, ...] = (),
) -> Sample:
    """Return a sample of `num_ops` rectifiers after one another."""
    value = Value("float32", (2, 3))
    return Sample(
        id=sample_id,
        framework="torch",
        task=task,
        inputs=(Input("input", value, "x", statistics=Statistics(0.0, 1.0)),),
        ops=tuple(Op("torch.relu", (Ref(index),), results=(value,)) for index in range(num_ops)),
        outputs=(Ref(num_ops),),
        provenance=Provenance(source=source, tags=tags),
    )


def rows(task: str, sizes: range) -> list[dict[str, Any]]:
    """Return rows of chains; even and odd lengths are two families, and short ones have tags."""
    return [
        sample_to_row(
            chain(
                f"{task}/chain-{size}",
                size,
                task,
                source=f"{task}-library",
                tags=("chain", "small") if size <= 2 else ("smallish",) if size == 3 else (),
            ),
            {"family": "even" if size % 2 == 0 else "odd", "flops": 6 * size},
        )
        for size in sizes
    ]


def write_dataset(root: Path) -> Path:
    """Write a dataset directory: cv (train 1 to 20, test 21 to 25) and nlp (train 1 to 5)."""
    write_table(rows("cv", range(1, 21)), root / "cv" / "train-0000.parquet")
    write_table(rows("cv", range(21, 26)), root / "cv" / "test-0000.parquet")
    write_table(rows("nlp", range(1, 6)), root / "nlp" / "train-0000.parquet")
    write_readme(root)
    return root
