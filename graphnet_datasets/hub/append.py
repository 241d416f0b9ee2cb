"""Concurrent appending to a repository.

There are no locks. A commit names its parent, and the Hub rejects it if the parent is no longer the
head. In this case everything is checked again, including duplicates.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import PushError
from .repository import KIND, Repository, Snapshot, hub_errors

if TYPE_CHECKING:
    from huggingface_hub import CommitInfo

CONFLICTS = frozenset({409, 412})
"""HTTP status codes of the Hub for a commit whose parent is outdated, or that conflicts."""

MAX_ATTEMPTS = 30
FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 10.0

Files = Mapping[str, Path | bytes]
"""New contents by path in the repository."""


def append(
    repository: Repository,
    make_files: Callable[[Snapshot], Files],
    message: str,
    *,
    create_pr: bool = False,
    description: str | None = None,
) -> CommitInfo | None:
    """Commit the files that `make_files` returns for the head; return None without files.

    `make_files` is called again for each new head until a commit is accepted.

    Raises:
        PushError: the Hub cannot be reached, rejects the commit for a reason other than a newer
            head, or every attempt met a newer head.
    """
    from huggingface_hub.errors import HfHubHTTPError

    for attempt in range(MAX_ATTEMPTS):
        with hub_errors(repository.id):
            snapshot = repository.snapshot()
            files = make_files(snapshot)
            if not files:
                return None
            try:
                return _commit(repository, snapshot, files, message, description, create_pr)
            except HfHubHTTPError as error:
                if error.response.status_code not in CONFLICTS:
                    raise
        # A random wait keeps rejected writers from colliding again.
        longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt)
        time.sleep(random.uniform(0, longest))  # noqa: S311 - not used for security
    raise PushError(
        f"`{repository.id}` received other commits during each of {MAX_ATTEMPTS} attempts. Push "
        "again when fewer writers are active."
    )


def _commit(
    repository: Repository,
    snapshot: Snapshot,
    files: Files,
    message: str,
    description: str | None,
    create_pr: bool,
) -> CommitInfo:
    from huggingface_hub import CommitOperationAdd

    # New operations for each attempt, because an operation records that its file was uploaded.
    operations = [CommitOperationAdd(path, content) for path, content in files.items()]
    return repository.api.create_commit(
        repository.id,
        operations,
        commit_message=message,
        commit_description=description,
        repo_type=KIND,
        revision=repository.revision,
        parent_commit=snapshot.commit,
        create_pr=create_pr,
    )
