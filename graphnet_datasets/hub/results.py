"""Results of a push."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple


class Skipped(NamedTuple):
    """The id of an item that was not pushed, and the reason."""

    id: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Pushed:
    """The result of a push. Without a commit there are no URLs (None), and a commit to the branch
    itself has no `pull_request_url`."""

    num_added: int
    skipped: tuple[Skipped, ...] = ()
    commit_url: str | None = None
    pull_request_url: str | None = None
