"""What the tests of pushes share: small samples, and a look at what lies on the Hub."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from graphnet_datasets import Sample, push_samples
from graphnet_datasets.hub import Pushed
from graphnet_datasets.schema import empty_run
from tests.hub_server import Hub
from tests.tables import chain

REPO = "org/graphs"


def push(samples: Any, *place: Any, **options: Any) -> Pushed:
    """Push without validation, which takes seconds and has tests of its own."""
    return push_samples(samples, *place, **{"skip_validation": "a test", **options})


def chains(task: str, sizes: Sequence[int]) -> list[Sample]:
    return [chain(f"{task}/chain-{size}", size, task) for size in sizes]


def files(hub: Hub, branch: str = "main", repo: str = REPO) -> dict[str, bytes]:
    repository = hub.state.repositories[repo]
    commit = repository.resolve(branch)
    assert commit is not None
    return {path: blob.content for path, blob in repository.commits[commit].items()}


def shards(hub: Hub, branch: str = "main") -> list[str]:
    return sorted(path for path in files(hub, branch) if path.endswith(".parquet"))


def card(hub: Hub) -> tuple[dict[str, object], str]:
    _, data, body = files(hub)["README.md"].decode().split("---\n", 2)
    return yaml.safe_load(data), body


def run_record(run_id: str, **columns: object) -> dict[str, object]:
    return {**empty_run(), "run_id": run_id, "compiler": "inductor", "status": "ok", **columns}
