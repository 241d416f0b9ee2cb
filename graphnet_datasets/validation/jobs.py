"""What the jobs of both frameworks share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..errors import MemoryLimitError
from ..isolation import Reporter
from ..sample import Sample
from ..schema import sample_from_row
from .reading import Failed, Skipped
from .validator import SAMPLE_FILE


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What a sample may do while it is checked: the memory it takes, and whether its code runs."""

    memory_limit_bytes: int
    trust_remote_code: bool


Check = Callable[[Sample, Terms], "str | None"]
"""A check: takes a sample and terms, returns a remark; raises `Failed` or `Skipped`."""


def work(
    checks: Mapping[str, Check], payload: Mapping[str, Any], reporter: Reporter, directory: Path
) -> None:
    """Make one check in this process and report its outcome."""
    with (directory / SAMPLE_FILE).open("rb") as file, pa.ipc.open_file(file) as reader:
        sample = sample_from_row(reader.get_batch(0).to_pylist()[0])
    outcome, reason = "passed", ""
    try:
        terms = Terms(payload["memory_limit_bytes"], payload["trust_remote_code"])
        if sample.custom_operators and not terms.trust_remote_code:
            raise Skipped("It would run the source of custom operators, which was not allowed.")
        reason = checks[payload["check"]](sample, terms) or ""
    except (Skipped, MemoryLimitError) as skipped:
        outcome, reason = "skipped", str(skipped)
    except Failed as failed:
        outcome, reason = "failed", str(failed)
    reporter.send({"outcome": outcome, "reason": reason})


def explain(counts: Mapping[str, int], writes_infinities: bool) -> str | None:
    """Say why outputs that are not finite are what the graph means, or raise.

    Raises:
        Failed: nothing explains them.

    >>> explain({"infinite": 3}, writes_infinities=True)
    'The outputs hold 3 infinite elements; the graph itself writes infinities (a mask).'
    """
    if not counts:
        return None
    found = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    if "NaN" not in counts and writes_infinities:
        return f"The outputs hold {found} elements; the graph itself writes infinities (a mask)."
    raise Failed(f"The outputs hold {found} elements.")
