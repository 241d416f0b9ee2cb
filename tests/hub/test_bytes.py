"""A push and a filter fetch only what they need."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphnet_datasets import Sample, load_dataset
from graphnet_datasets.sample import Input, Value
from tests.hub_server import Hub
from tests.tables import chain

from .pushes import REPO, files, push


def large(task: str, num_ops: int, seed: int) -> Sample:
    """Return a chain that also carries elements, which do not compress."""
    data = random.Random(seed).randbytes(20_000)  # noqa: S311
    sample = chain(f"{task}/large-{num_ops}-{seed}", num_ops, task)
    stored = Input("constant", Value("uint8", (20_000,)), "table", data=data)
    return Sample(
        **{
            **{name: getattr(sample, name) for name in sample.__dataclass_fields__},
            "inputs": (*sample.inputs, stored),
            "ops": tuple(
                type(op)(op.target, (type(op.args[0])(0 if k == 0 else k + 1),), results=op.results)
                for k, op in enumerate(sample.ops)
            ),
            "outputs": (type(sample.outputs[0])(num_ops + 1),),
        }
    )


@pytest.mark.slow
def test_only_needed_parts_of_shards_are_fetched(hub: Hub) -> None:
    push([large("cv", size, size) for size in range(1, 101)], REPO, split="train")
    push([large("cv", size, size) for size in range(101, 201)], REPO, split="train")
    push([large("nlp", size, size) for size in range(201, 241)], REPO, split="train")
    sizes = {
        path: len(content) for path, content in files(hub).items() if path.endswith(".parquet")
    }
    assert min(sizes.values()) > 800_000
    sha_of = {
        blob.sha256: path
        for path, blob in hub.state.repositories[REPO]
        .commits[hub.state.repositories[REPO].branches["main"]]
        .items()
    }

    def fetched() -> dict[str, int]:
        served = {sha_of[sha]: n for sha, n in hub.state.bytes_served.items() if sha in sha_of}
        hub.state.bytes_served.clear()
        return {path: served.get(path, 0) for path in sizes}

    fetched()
    assert push([large("cv", 5, 5)], REPO).num_added == 0
    for path, count in fetched().items():
        assert 0 < count < 250_000, path
    # A filter on task and size reads the one shard whose graphs can match, and of the others of
    # that task at most the end, where Parquet keeps the least and the greatest value.
    rows = load_dataset(REPO, "cv", filters=[("num_ops", ">", 190)], streaming=True, split="train")
    assert [row["num_ops"] for row in rows] == list(range(191, 201))
    for path, count in fetched().items():
        least = pq.read_table(pa.BufferReader(files(hub)[path]), columns=["num_ops"])[0][0].as_py()
        if path.startswith("nlp/"):
            assert count == 0
        elif least == 1:
            assert count <= 3 * 65_536
        else:
            assert count > 1_000_000
