"""A fork server whose jobs say what they can reach."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from graphnet_datasets.isolation import Reporter, serve


def work(_payload: dict[str, Any], reporter: Reporter, _directory: Path) -> None:
    """Report the network's interfaces that are up beside the loopback, and what is in memory."""
    interfaces = [name for _, name in socket.if_nameindex()]
    server = Path(f"/proc/{os.getppid()}/environ").read_bytes()
    with socket.socket() as listening, socket.socket() as calling:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        calling.connect(listening.getsockname())
    reporter.send(
        {
            "interfaces": interfaces,
            "has_token": "HF_TOKEN" in os.environ or b"HF_TOKEN" in server,
            "routes": Path("/proc/net/route").read_text().count("\n") - 1,
        }
    )


if __name__ == "__main__":
    serve(work)
