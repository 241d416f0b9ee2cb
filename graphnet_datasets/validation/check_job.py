"""The message that describes a check to its worker process."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

CAPTURES_VARIABLE = "GRAPHNET_DATASETS_CAPTURES"
"""The environment variable that makes a fork server import the capture code, unless empty."""

CAPTURING = frozenset({"reextractable"})
"""The checks that capture graphs."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckJob:
    """A check for a worker process: written by the parent, read by the child."""

    check: str
    memory_limit_bytes: int
    trust_remote_code: bool

    def to_payload(self) -> dict[str, Any]:
        """Return the job as a JSON-compatible object."""
        return dataclasses.asdict(self)

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> CheckJob:
        """Parse the result of `to_payload`.

        >>> job = CheckJob(check="runnable", memory_limit_bytes=2**30, trust_remote_code=False)
        >>> CheckJob.from_payload(job.to_payload()) == job
        True
        """
        return cls(**payload)
