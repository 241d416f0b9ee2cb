"""The checks by name, and what they find."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["passed", "failed", "skipped"]

CHECKS = (
    "custom_operators_accessible",
    "statically_analysable",
    "serializable",
    "runnable",
    "decomposable",
    "reextractable",
)
"""All checks, the cheap ones first."""


@dataclasses.dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found.

    `reason` is empty for a plain pass; for a failure it says what happened and where, for a skipped
    check why it could not be made. `versions` names the software that the outcome depends on.
    """

    check: str
    outcome: Outcome
    reason: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Validation:
    """The results of all checks that were asked for, on one sample."""

    sample_id: str
    results: tuple[CheckResult, ...]

    @property
    def is_valid(self) -> bool:
        """Whether no check failed."""
        return all(result.outcome != "failed" for result in self.results)

    @property
    def why_excluded(self) -> str:
        """The failed checks with their reasons in one text; empty if none failed.

        >>> failed = CheckResult("runnable", "failed", "The output is NaN.")
        >>> Validation("example/nan", (failed,)).why_excluded
        'runnable: The output is NaN.'
        """
        failed = [result for result in self.results if result.outcome == "failed"]
        return "; ".join(f"{result.check}: {result.reason}" for result in failed)

    def __getitem__(self, check: str) -> CheckResult:
        for result in self.results:
            if result.check == check:
                return result
        raise KeyError(f"The check `{check}` was not made on `{self.sample_id}`.")

    def to_json(self) -> str:
        """Return the results as one JSON object."""
        results = [dataclasses.asdict(result) for result in self.results]
        return json.dumps({"id": self.sample_id, "is_valid": self.is_valid, "checks": results})
