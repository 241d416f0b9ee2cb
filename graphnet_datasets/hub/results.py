"""What a push did."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple


class Skipped(NamedTuple):
    """An item that was not pushed, by its id, and why."""

    id: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Pushed:
    """What a push added. The addresses are None where nothing was to be committed, and
    `pull_request_url` also where the commit went to the branch itself."""

    num_added: int
    skipped: tuple[Skipped, ...] = ()
    commit_url: str | None = None
    pull_request_url: str | None = None
