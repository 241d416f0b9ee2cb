"""A server whose workers die while they load, as often as a file says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from graphnet_datasets.benchmark.child.worker import work
from graphnet_datasets.isolation import Reporter, serve


def work_or_die(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    path = Path(os.environ["TEST_DEATHS_FILE"])
    deaths = int(path.read_text())
    if deaths:
        path.write_text(str(deaths - 1))
        os.abort()
    work(payload, reporter, directory)


if __name__ == "__main__":
    serve(work_or_die)
