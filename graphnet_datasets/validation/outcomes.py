"""The names of the checks, and their results."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

Outcome: TypeAlias = Literal["passed", "failed", "skipped"]

CHECKS = (
    "custom_operators_accessible",
    "statically_analysable",
    "serializable",
    "runnable",
    "decomposable",
    "reextractable",
)
"""All checks, the cheapest first."""

RUNNING = ("runnable", "decomposable", "reextractable")
"""The checks that run the sample."""


@dataclasses.dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    `reason` is empty for a plain pass. It describes the problem and its location for a failure, and
    the obstacle for a skipped check. `versions` contains the versions of the software on which the
    outcome depends.
    """

    check: str
    outcome: Outcome
    reason: str = ""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Validation:
    """The results of all requested checks of one sample."""

    sample_id: str
    results: tuple[CheckResult, ...]

    @property
    def is_valid(self) -> bool:
        """True if no check failed."""
        return all(result.outcome != "failed" for result in self.results)

    @property
    def why_excluded(self) -> str:
        """The failed checks with their reasons as one string; empty if none failed.

        >>> failed = CheckResult("runnable", "failed", "The output is NaN.")
        >>> Validation("example/nan", (failed,)).why_excluded
        'runnable: The output is NaN.'
        """
        failed = [result for result in self.results if result.outcome == "failed"]
        return "; ".join(f"{result.check}: {result.reason}" for result in failed)

    def to_columns(self) -> dict[str, Any]:
        """Return the columns `validation` and `why_excluded` of the sample's row.

        >>> passed = CheckResult("runnable", "passed", versions={"torch": "2.13.0"})
        >>> columns = Validation("example/add", (passed,)).to_columns()
        >>> columns["validation"][0]["versions"], columns["why_excluded"]
        ([{'name': 'torch', 'version': '2.13.0'}], None)
        """
        checks = [
            {
                "check": result.check,
                "outcome": result.outcome,
                "reason": result.reason,
                "versions": [
                    {"name": name, "version": version} for name, version in result.versions.items()
                ],
            }
            for result in self.results
        ]
        return {"validation": checks, "why_excluded": self.why_excluded or None}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Validation | None:
        """Read the validation from a row of the `graphs` table; or None.

        >>> Validation.from_row({"id": "example/add", "validation": None}) is None
        True
        """
        stored = row.get("validation")
        if stored is None:
            return None
        return cls(
            row["id"],
            tuple(
                CheckResult(
                    result["check"],
                    result["outcome"],
                    result["reason"] or "",
                    {version["name"]: version["version"] for version in result["versions"] or ()},
                )
                for result in stored
            ),
        )

    def __getitem__(self, check: str) -> CheckResult:
        for result in self.results:
            if result.check == check:
                return result
        raise KeyError(f"The check `{check}` was not run on `{self.sample_id}`.")

    def to_json(self) -> str:
        """Return the results as one JSON object."""
        results = [dataclasses.asdict(result) for result in self.results]
        return json.dumps({"id": self.sample_id, "is_valid": self.is_valid, "checks": results})
