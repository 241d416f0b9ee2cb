"""Jobs of a pool: a result, an error, a crash, and a worker that is lost; see `test_pool`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from graphnet_datasets.isolation import RESULT_FILE, Reporter


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Do what the payload names."""
    match payload["do"]:
        case "square":
            reporter.send({"pid": os.getpid()})
            (directory / RESULT_FILE).write_bytes(str(payload["number"] ** 2).encode())
        case "replace_result":
            if payload["kind"] == "link":
                (directory / RESULT_FILE).symlink_to(payload["target"])
            else:
                os.mkfifo(directory / RESULT_FILE)
        case "large_result":
            (directory / RESULT_FILE).touch()
            os.truncate(directory / RESULT_FILE, payload["size"])
        case "raise":
            raise ValueError("not a number")
        case "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sleep":
            time.sleep(1000)
        case "kill_worker":
            # Two generations up from the job: its fork server, and the process that started that.
            marker = Path(payload["marker"])
            if payload["always"] or not marker.exists():
                marker.touch()
                status = Path(f"/proc/{os.getppid()}/status").read_text()
                (line,) = [each for each in status.splitlines() if each.startswith("PPid:")]
                os.kill(int(line.split()[1]), signal.SIGKILL)
                time.sleep(1000)
            (directory / RESULT_FILE).write_bytes(b"alive")
