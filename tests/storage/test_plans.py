"""Plans of tables: the rows of parts are written in order, with replaced columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from graphnet_datasets.errors import RunError
from graphnet_datasets.isolation import Ending, Finished, Outcome, PoolJob
from graphnet_datasets.storage.parts import encode_part, save_part
from graphnet_datasets.storage.plans import run_plans, write_plans
from graphnet_datasets.storage.staging import Staging
from graphnet_datasets.storage.table import read_table, to_arrow


class Here:
    """A pool that writes plans in this process, or fails."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending

    def run(self, jobs: Iterable[PoolJob]) -> Iterator[Finished]:
        for job in jobs:
            if self.ending is Ending.FINISHED:
                write_plans(job.payload["plan"])
            yield Finished(
                job, Outcome(self.ending, "write", [], None, 1, "", 0, 0.0, {}, 0, 0), None
            )

    def close(self) -> None:
        """End nothing."""


def test_rows_are_written_with_replaced_columns(tmp_path: Path) -> None:
    staging = Staging(tmp_path / "mine", "test")
    staging.parts.mkdir(parents=True)
    tables = [to_arrow([{"id": name, "framework": "torch"}]) for name in "abc"]
    part = str(save_part(encode_part(tables, {}), staging.parts))
    folder, file = tmp_path / "cv", tmp_path / "all.parquet"
    shards = {"folder": str(folder), "split": "train", "rows": [(part, 2, {}), (part, 0, {})]}
    single = {"file": str(file), "rows": [(part, 1, {"id": "other"})]}
    run_plans([[shards], [single]], staging, Here(Ending.FINISHED))
    assert read_table(folder / "train-0000.parquet")["id"].to_pylist() == ["c", "a"]
    (row,) = read_table(file).to_pylist()
    assert (row["id"], row["framework"]) == ("other", "torch")
    with pytest.raises(RunError, match=r"A table of `.*mine` could not be written: crash in write"):
        run_plans([[shards]], staging, Here(Ending.CRASH))
