"""What the parent of a check and its process agree on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

CAPTURES_VARIABLE = "GRAPHNET_DATASETS_CAPTURES"
"""The environment variable that has a fork server import what captures graphs, unless empty."""

CAPTURING = frozenset({"reextractable"})
"""The checks that capture graphs."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckJob:
    """One check to be made in a process of its own: written by the parent and read by the child."""

    check: str
    memory_limit_bytes: int
    trust_remote_code: bool

    def to_payload(self) -> dict[str, Any]:
        """Return the job as an object that JSON can hold."""
        return dataclasses.asdict(self)

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> CheckJob:
        """Return the job that `to_payload` gave.

        >>> job = CheckJob(check="runnable", memory_limit_bytes=2**30, trust_remote_code=False)
        >>> CheckJob.from_payload(job.to_payload()) == job
        True
        """
        return cls(**payload)
