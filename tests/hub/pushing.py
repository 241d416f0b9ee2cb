"""A process that pushes chains: `python -m tests.hub.pushing REPO FIRST LAST`."""

from __future__ import annotations

import sys

from graphnet_datasets import push_samples
from tests.tables import chain


def main() -> None:
    repository, first, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    samples = [chain(f"cv/chain-{size}", size, "cv") for size in range(first, last)]
    pushed = push_samples(samples, repository, split="train", skip_validation="a test")
    print(pushed.num_added)  # noqa: T201 - read by the test


if __name__ == "__main__":
    main()
