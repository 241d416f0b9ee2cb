"""The checks that read a sample without running it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..directory import read_directory, write_directory
from ..errors import (
    GraphNetError,
    MemoryLimitError,
    MissingExtraError,
    UnknownFrameworkError,
    UnknownOperatorError,
)
from ..frameworks import framework_named, module
from ..sample import Sample, Value
from ..schema import GRAPHS_SCHEMA, sample_from_row, sample_to_row
from ..terminal import first_few
from .outcomes import CheckResult

_MAX_LISTED = 5


class Skipped(Exception):  # noqa: N818 - not an error: a requirement of the check is missing
    """A check cannot run; the message says why."""


class Failed(Exception):  # noqa: N818 - an outcome
    """A failed check; the message is the reason."""


def check(name: str, sample: Sample, versions: Mapping[str, str]) -> CheckResult:
    """Run one of the checks of this module."""
    try:
        reason = READING[name](sample) or ""
    except (Skipped, MissingExtraError) as skipped:
        return CheckResult(name, "skipped", str(skipped), versions)
    except UnknownFrameworkError as error:  # its package does not support the check
        return CheckResult(name, "skipped", str(error), versions)
    except MemoryLimitError as error:
        return CheckResult(name, "failed", str(error), versions)
    except (Failed, GraphNetError) as failure:
        return CheckResult(name, "failed", str(failure), versions)
    return CheckResult(name, "passed", reason, versions)


def check_custom_operators(sample: Sample) -> str | None:
    """Check that every operator has an entry in the table or a source.

    The source stored in the sample must be the captured source; it is not run here.
    """
    table = module(sample.framework, "operators")
    unknown = []
    for target in dict.fromkeys(op.target for op in sample.ops):
        try:
            table.lookup(target)
        except UnknownOperatorError:
            if target not in sample.custom_operators_by_target:
                unknown.append(target)
    if unknown:
        raise Failed(
            f"{_listed(unknown)} is missing: it is not in the operator table of "
            f"{sample.framework}, and the sample does not contain its source."
        )
    changed = [operator.name for operator in sample.custom_operators if not operator.is_intact]
    if changed:
        raise Failed(f"The source of {_listed(changed)} does not have the recorded hash.")
    operators = [
        f"{operator.name} {operator.source_hash[:16]}" for operator in sample.custom_operators
    ]
    if operators:
        return f"The source of {_listed(operators)} comes with the sample."
    return "The sample has no custom operators."


def check_statically_analysable(sample: Sample) -> str | None:
    """Check that all operators are known, and report data-dependent shapes and dtypes.

    GraphNet requires that the names of operators can be read without running a graph. Sizes that
    depend on data (`nonzero`, edges without loops) are allowed. If the framework is not installed,
    or its walk may end the process, the check uses only the recorded shapes and dtypes.
    """
    framework = framework_named(sample.framework)
    if framework.is_installed and not framework.is_walk_native:
        return tell_unknown(sample, module(sample.framework, "results").find_unknown(sample))
    unknown = [
        position
        for position, op in enumerate(sample.ops)
        if op.results is None or not all(map(_is_known, op.results))
    ]
    if unknown and not framework.is_installed:
        raise Skipped(f"{sample.framework}, which propagates shapes, is not installed.")
    return tell_unknown(sample, unknown)


def tell_unknown(sample: Sample, positions: Sequence[int]) -> str | None:
    """Describe the operators whose results are unknown until they run, if there are any."""
    if not positions:
        return None
    listed = [
        f"{position} (`{sample.ops[position].target}`)" for position in positions[:_MAX_LISTED]
    ]
    return (
        f"Shapes or dtypes are known only by running the graph: {len(positions)} of "
        f"{sample.num_ops} operators, of them {', '.join(listed)}."
    )


def _is_known(value: Value) -> bool:
    return value.dtype is not None and value.shape is not None


def check_serializable(sample: Sample) -> str | None:
    """Check that the sample survives a round trip through row, table and directory."""
    row = sample_to_row(sample)
    table = pa.Table.from_pylist([row], schema=GRAPHS_SCHEMA)
    (read,) = table.to_pylist()
    _compare(sample, sample_from_row(read), "a row of the `graphs` table")
    with tempfile.TemporaryDirectory(prefix="graphnet-") as temporary:
        path = write_directory(sample, Path(temporary) / "sample")
        samples = read_directory(path)
    if len(samples) != 1:
        raise Failed(f"Written as a directory it is read back as {len(samples)} samples.")
    _compare(sample, samples[0], "a GraphNet directory")
    return None


def _compare(sample: Sample, other: Sample, form: str) -> None:
    # Compare JSON instead of samples, because NaN is not equal to itself and 0.0 equals -0.0.
    before, after = sample_to_row(sample), sample_to_row(other)
    for name in before:
        if repr(before[name]) != repr(after[name]):
            raise Failed(f"Written as {form} and read back, it differs in `{name}`.")


def _listed(names: list[str]) -> str:
    return first_few([f"`{name}`" for name in names], _MAX_LISTED)


READING: dict[str, Callable[[Sample], Any]] = {
    "custom_operators_accessible": check_custom_operators,
    "statically_analysable": check_statically_analysable,
    "serializable": check_serializable,
}
