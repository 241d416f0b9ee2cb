"""Appending to a repository that others append to at the same time.

Nobody locks anything: a commit names the commit that it was made for, the Hub refuses it where
another one came first, and then everything is looked at again, duplicates included.
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
"""Answers of the Hub to a commit whose parent is no longer the head, or that met another one."""

MAX_ATTEMPTS = 30
FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 10.0

Files = Mapping[str, Path | bytes]
"""New content by path in the repository."""


def append(
    repository: Repository,
    make_files: Callable[[Snapshot], Files],
    message: str,
    *,
    create_pr: bool = False,
    description: str | None = None,
) -> CommitInfo | None:
    """Commit what `make_files` makes for the head of the branch; None where it makes nothing.

    `make_files` is called again for each new head, until a commit is taken.

    Raises:
        PushError: the Hub cannot be reached, refuses the commit for another reason than a newer
            head, or there was a newer head each time.
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
        # Writers that were refused together must not come back together.
        longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt)
        time.sleep(random.uniform(0, longest))  # noqa: S311 - spreads writers, hides nothing
    raise PushError(
        f"`{repository.id}` got other commits during each of {MAX_ATTEMPTS} attempts. Push again "
        "when fewer writers are at work."
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

    # Made anew for each attempt: an operation remembers that its file has been uploaded.
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
