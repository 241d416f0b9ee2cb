"""A server whose workers die while they load, as often as a file says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from graphnet_datasets.benchmark.child import worker
from graphnet_datasets.isolation import Reporter

prepare = worker.prepare


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    path = Path(os.environ["TEST_DEATHS_FILE"])
    deaths = int(path.read_text())
    if deaths:
        path.write_text(str(deaths - 1))
        os.abort()
    worker.work(payload, reporter, directory)
