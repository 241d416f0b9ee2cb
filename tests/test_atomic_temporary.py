"""Temporary directories are gone however their process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HOLD = """
import sys, time
from graphnet_datasets.atomic import temporary_directory

with temporary_directory("graphnet-test-") as place:
    (place / "inner").mkdir()
    (place / "inner" / "file").write_text("content")
    print(place, flush=True)
    time.sleep(600)
"""
MEASURE = """
import time
from graphnet_datasets.tuning.measure import LiveMeasurer

measurer = LiveMeasurer([])
(measurer._directory / "reference.npz").write_bytes(b"content")
print(measurer._directory, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("code", [HOLD, MEASURE], ids=["directory", "measurer"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_a_killed_process_leaves_no_directory(code: str, number: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        # A suite that a shell started in the background ignores Ctrl-C, and would pass that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    place = Path(process.stdout.readline().decode().strip())
    assert place.parent == tmp_path
    assert any(place.iterdir())
    process.send_signal(number)
    process.communicate()
    for _ in range(1000):  # the shell that removes it ends a moment later
        if not place.exists():
            break
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []
