"""What one job has imported is there for the next ones, and nothing else is."""

from __future__ import annotations

import pytest

from graphnet_datasets.isolation import Ending, ForkServer

from .test_client import MODULE, ROOT, run


@pytest.mark.parametrize("fails", [False, True])
def test_the_server_imports_modules_of_earlier_jobs(fails: bool) -> None:
    with ForkServer(MODULE, environment={"PYTHONPATH": str(ROOT)}) as server:

        def is_there(name: str) -> bool:
            outcome = run(server, "import", name=name, fails=fails)
            assert outcome.ending is (Ending.ERROR if fails else Ending.FINISHED)
            return outcome.merged()["was_there"]

        assert not is_there("colorsys")
        assert is_there("colorsys")
        for _ in range(2):  # nobody has said that jobs import it
            assert not is_there("sched")
