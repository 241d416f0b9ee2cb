"""Repositories of Git on this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(clone: Path, *arguments: str) -> str:
    """Return what a Git command prints."""
    command = ["git", "-C", str(clone), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def make_clone(path: Path) -> Path:
    """Make a repository with one commit and somebody who commits; it needs no settings of ours."""
    path.mkdir(parents=True)
    git(path, "init", "--quiet", "--initial-branch", "main")
    for name, value in (("user.name", "Somebody"), ("user.email", "somebody@example.org"),
                        ("commit.gpgsign", "false")):  # fmt: skip
        git(path, "config", name, value)
    (path / "LICENSE").write_text("Apache-2.0\n")
    git(path, "add", "LICENSE")
    git(path, "commit", "--quiet", "--message", "Begin")
    return path
