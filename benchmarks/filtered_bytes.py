"""Bytes that a filter fetches from the Hub, of a table whose shards are sorted by size.

    python benchmarks/filtered_bytes.py [ROWS]

Serves a dataset of perturbed copies of the embedded graphs (see `large.py`), each as large as a
real one, from a Hub on this machine, streams it through the real clients, and prints one JSON
object per question: rows, bytes served of table files, and their share of all there are. The last
lines ask the same of the same rows in random order.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

NOISE_BYTES = 9_000
"""A row of a GraphNet graph takes 17 thousand bytes as Parquet, one of a perturbed copy a tenth."""

QUESTIONS: dict[str, dict[str, Any]] = {
    "a size of one task": {"config": "nlp", "filters": [("num_ops", "<", 10)]},
    "the largest of one task": {"config": "nlp", "filters": [("num_ops", ">", 1500)]},
    "a task and a size of all": {"filters": [("task", "==", "nlp"), ("num_ops", "<", 10)]},
    "a size of all": {"filters": [("num_ops", "<", 10)]},
    "two columns of all": {"columns": ["id", "num_ops"]},
    "everything": {},
}


@contextlib.contextmanager
def local_hub() -> Iterator[Any]:
    """Serve a Hub to the clients, which read their settings when they are imported."""
    from tests.hub_server import TOKEN, running_hub

    with running_hub() as hub, tempfile.TemporaryDirectory(prefix="graphnet-benchmark-") as home:
        os.environ.update(
            HF_ENDPOINT=hub.endpoint,
            HF_TOKEN=TOKEN,
            HF_HOME=home,
            HF_HUB_DISABLE_XET="1",
            HF_HUB_DISABLE_PROGRESS_BARS="1",
            HF_DATASETS_DISABLE_PROGRESS_BARS="1",
        )
        yield hub


def publish(directory: Path, repo_id: str) -> int:
    """Upload a dataset directory and return the bytes of its tables."""
    from huggingface_hub import HfApi

    HfApi().create_repo(repo_id, repo_type="dataset")
    HfApi().upload_folder(repo_id=repo_id, folder_path=directory, repo_type="dataset")
    return sum(path.stat().st_size for path in directory.rglob("*.parquet"))


def ask(hub: Any, repo_id: str, question: dict[str, Any]) -> tuple[int, int]:
    """Stream what a question is about; return the rows and the bytes served of table files."""
    # What the clients hold in memory would not be asked for again.
    from huggingface_hub import HfFileSystem

    from graphnet_datasets import load_dataset

    HfFileSystem.clear_instance_cache()
    hub.state.bytes_served.clear()
    splits: Any = load_dataset(repo_id, split=None, streaming=True, **question)
    rows = sum(1 for split in splits.values() for _ in split)
    served = sum(
        count
        for key, count in hub.state.bytes_served.items()
        if key.endswith(".parquet") or len(key) == 64  # blobs are served by their hash
    )
    return rows, served


def shuffle(directory: Path, out: Path) -> None:
    """Write the same files with their rows in random order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from graphnet_datasets.storage.layout import write_readme
    from graphnet_datasets.storage.table import write_arrow

    for path in sorted(directory.rglob("*.parquet")):
        table = pq.read_table(path).replace_schema_metadata()
        order = list(range(table.num_rows))
        random.Random(0).shuffle(order)  # noqa: S311 - an order, not a secret
        write_arrow(table.take(pa.array(order)), out / path.relative_to(directory))
    write_readme(out)


def main() -> None:
    num_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with local_hub() as hub, tempfile.TemporaryDirectory(prefix="graphnet-benchmark-") as folder:
        from benchmarks import large

        root = Path(folder)
        large.build(root, num_rows, NOISE_BYTES)
        shuffle(root / "dataset", root / "shuffled")
        for name in ("dataset", "shuffled"):
            total = publish(root / name, f"org/{name}")
            for text, question in QUESTIONS.items():
                rows, served = ask(hub, f"org/{name}", question)
                print(
                    json.dumps(
                        {
                            "order": "by size" if name == "dataset" else "random",
                            "question": text,
                            "rows": rows,
                            "bytes": served,
                            "share": round(served / total, 4),
                            "total_bytes": total,
                        }
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main()
