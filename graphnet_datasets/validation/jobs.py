"""Common parts of the check jobs of all frameworks."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ..analysis.finite import explain_not_finite
from ..errors import MemoryLimitError, MissingExtraError
from ..frameworks import FRAMEWORK_VARIABLE, module
from ..inputs import prepare_blocks
from ..isolation import Reporter
from ..sample import Sample
from ..schema.sample_files import read_sample
from .check_job import CheckJob
from .reading import Failed, Skipped


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """Conditions of a check: the sample's memory limit, and whether its custom code may run.

    Operators outside the table are always allowed, because each check runs in its own process.
    """

    memory_limit_bytes: int
    trust_remote_code: bool
    allow_unchecked_operators: bool = True


Check = Callable[[Sample, Terms], "str | None"]
"""A check: takes a sample and terms, returns a remark; raises `Failed` or `Skipped`."""


def prepare() -> None:
    """Import the modules of a framework that all jobs need."""
    module(os.environ[FRAMEWORK_VARIABLE], "runtime").import_all(with_fakes=True)
    prepare_blocks()


def work(
    checks: Mapping[str, Check], payload: Mapping[str, Any], reporter: Reporter, directory: Path
) -> None:
    """Run one check in this process and report its outcome."""
    job = CheckJob.from_payload(payload)
    sample = read_sample(directory)
    outcome, reason = "passed", ""
    try:
        terms = Terms(job.memory_limit_bytes, job.trust_remote_code)
        if sample.custom_operators and not terms.trust_remote_code:
            raise Skipped("It would run the source of custom operators, which was not allowed.")
        if job.check not in checks:
            raise Skipped(f"No check of this name runs samples of `{sample.framework}`.")
        reason = checks[job.check](sample, terms) or ""
    except (Skipped, MemoryLimitError, MissingExtraError) as skipped:
        outcome, reason = "skipped", str(skipped)
    except Failed as failed:
        outcome, reason = "failed", str(failed)
    reporter.send({"outcome": outcome, "reason": reason})


def explain_all(counted: Iterable[tuple[int, int]], sample: Sample) -> str | None:
    """Explain the non-finite outputs that a sample produces on purpose, or raise.

    `counted` contains the number of NaN and of infinite elements of each output.

    Raises:
        Failed: The non-finite outputs are unexplained.
    """
    text, is_meant = explain_not_finite(counted, sample)
    if not is_meant:
        raise Failed(text)
    return text or None


def difference(before: Sample, after: Sample) -> str:
    """Describe briefly how two samples with different structure hashes differ.

    >>> from graphnet_datasets.sample import Op
    >>> from graphnet_datasets.sample.arguments import Ref
    >>> def call(target):
    ...     return Sample("a", "torch", "other", (), (Op(target),), Ref(0))
    >>> difference(call("torch.relu"), call("torch.exp"))
    'lost 1 `torch.relu`; gained 1 `torch.exp`'
    """
    counts = [collections.Counter(op.target for op in sample.ops) for sample in (before, after)]
    lost, gained = counts[0] - counts[1], counts[1] - counts[0]
    if not lost and not gained:
        return f"the same {before.num_ops} operators with other arguments or edges"
    parts = []
    for word, counter in (("lost", lost), ("gained", gained)):
        listed = ", ".join(f"{count} `{name}`" for name, count in counter.most_common(4))
        if listed:
            parts.append(f"{word} {listed}")
    return "; ".join(parts)
