"""A Ray cluster of this machine, with two nodes of one processor each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

SMALL: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
"""What a node has."""


@contextlib.contextmanager
def two_nodes() -> Iterator[Any]:
    """Start the cluster and connect to it until the block ends; skip the tests without Ray."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        made = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
        made.add_node(**SMALL)
        ray.init(address=made.address, log_to_driver=False)
        yield made
        ray.shutdown()
        made.shutdown()
