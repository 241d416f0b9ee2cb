"""Build of the table of bugs: captures, expected verdicts and the Parquet file."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from graphnet_datasets import extract, run
from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.atomic import write_text
from graphnet_datasets.benchmark.settings import Settings
from graphnet_datasets.compilers.registry import list_entries
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample import Input, Sample
from graphnet_datasets.schema import COMPILER_BUGS_SCHEMA, ExpectedVerdict, sample_to_row
from graphnet_datasets.schema.tables import COMPILER_BUGS
from graphnet_datasets.scores import verdict_of
from graphnet_datasets.storage.table import write_arrow

from .bug import PREFIX, SOURCE, Bug
from .catalog import BUGS

VERDICTS = Path(__file__).parent / "verdicts.json"
"""The verdicts of the last measurement, by bug and compiler."""
TABLE = Path(PREFIX) / "train-0000.parquet"
ATTEMPTS = 3
VARIED = " --vary "
SETTINGS = Settings(has_oracle=False, has_profile=False, num_threads=1, alone_calls=3)

Verdicts = dict[str, dict[str, dict[str, str]]]


class Module(torch.nn.Module):
    """Calls a bug's function, and returns a second output that depends on an additional input.

    The second output changes with each call, so that a stored answer is detected even if the first
    output is the same for all inputs.
    """

    def __init__(self, bug: Bug) -> None:
        super().__init__()
        if bug.function is None:
            raise GraphNetError(
                f"`{bug.name}` has neither a function nor a sample. Add one of them."
            )
        self.function = bug.function

    def forward(self, *tensors: torch.Tensor) -> tuple[Any, torch.Tensor]:
        """Return the outputs of the function, and twice the last tensor."""
        *arguments, follower = tensors
        return self.function(*arguments), follower * 2.0


def capture(bug: Bug) -> Sample:
    """Return a bug's graph, with the elements of all its inputs.

    Raises:
        GraphNetError: the graph breaks, or takes other inputs than the bug has.
    """
    if bug.sample is not None:
        return bug.sample
    follower = torch.linspace(0.5, 1.5, 4)
    tensors = [*(torch.from_numpy(array.copy()) for array in bug.inputs), follower]
    module = extract(
        name=f"{PREFIX}/{bug.name}", source=SOURCE, license="Apache-2.0", warm_up=False
    )(Module(bug).eval())
    with torch.no_grad():
        module(*tensors)
    if len(module.samples) != 1 or len(module.samples[0].inputs) != len(tensors):
        raise GraphNetError(
            f"The graph of `{bug.name}` breaks or does not use all of its inputs. Write a function "
            "that is traced as one graph and uses each of them."
        )
    (sample,) = module.samples
    # Dynamo orders inputs by their first use.
    inputs = tuple(
        dataclasses.replace(item, data=tensors[_place(item)].contiguous().numpy().tobytes())
        for item in sample.inputs
    )
    return dataclasses.replace(sample, inputs=inputs)


def _place(item: Input) -> int:
    """Return the position of an input among the arguments of `Module.forward`."""
    return int(item.source_name.rpartition("tensors_")[2].rstrip("_"))


def read_verdicts(path: Path = VERDICTS) -> Verdicts:
    """Return the verdicts of the last measurement, by bug and compiler."""
    return json.loads(path.read_text()) if path.is_file() else {}


def measure(
    bugs: Sequence[Bug], compilers: Sequence[str], out: Path, path: Path = VERDICTS
) -> Verdicts:
    """Run bugs under compilers, store the records in `out`, and update the verdicts in `path`.

    Graphs without a verdict run up to `ATTEMPTS` times, because a record may be undecidable on a
    busy machine. `path` is read and written after each compiler, so that several measurements can
    run in parallel.
    """
    for compiler in compilers:
        renewed = _measure_compiler(bugs, compiler, out)
        verdicts = read_verdicts(path)
        for name, items in renewed.items():
            verdicts.setdefault(name, {}).update(items)
        write_text(path, json.dumps(verdicts, indent=1, sort_keys=True) + "\n")
    return read_verdicts(path)


def _measure_compiler(bugs: Sequence[Bug], compiler: str, out: Path) -> Verdicts:
    """Return the verdicts of one compiler; bugs of other frameworks are skipped."""
    verdicts: Verdicts = {}
    (framework,) = {entry.framework for entry in list_entries() if entry.name == compiler}
    bugs = [bug for bug in bugs if bug.framework == framework]
    for num_variations in sorted({0, *(bug.num_variations for bug in bugs)}):
        pending = {
            bug.name: capture(bug) for bug in bugs if num_variations in (0, bug.num_variations)
        }
        for attempt in range(ATTEMPTS):
            settings = dataclasses.replace(SETTINGS, num_variations=num_variations)
            place = out / f"attempt-{attempt}"
            records: Any = run(list(pending.values()), compiler, out=place, settings=settings)
            for name, record in zip(list(pending), records, strict=True):
                if (verdict := verdict_of(record)) is None:
                    print(f"{name} under {compiler}: {record['status']}, {record['reason']}")
                    continue
                del pending[name]
                key = compiler + (f"{VARIED}{num_variations}" if num_variations else "")
                verdicts.setdefault(name, {})[key] = {
                    "options": record["compiler_options"],
                    "version": record["compiler_version"],
                    "verdict": verdict,
                }
            if not pending:
                break
    return verdicts


def _expected(key: str, verdict: Mapping[str, str]) -> dict[str, Any]:
    """Return an item of the column `expected` for a key of the verdicts, `inductor --vary 3`."""
    compiler, _, num_variations = key.partition(VARIED)
    return {
        "compiler": compiler,
        "num_variations": int(num_variations or 0),
        **verdict,
    }


def bug_columns(bug: Bug, verdicts: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return the columns of a row that describe the bug.

    A bug is verified if its compiler fails or is wrong as reported.
    """
    expected = [_expected(key, verdict) for key, verdict in sorted(verdicts.items())]
    own = {item["verdict"] for item in expected if item["compiler"] == bug.compiler}
    return {
        "bug_title": bug.title,
        "bug_url": bug.url,
        "bug_compiler": bug.compiler,
        "bug_versions": bug.versions,
        "bug_note": bug.note,
        "is_verified": bug.is_as_reported
        and not own.isdisjoint({ExpectedVerdict.WRONG, ExpectedVerdict.FAILS}),
        "expected": expected,
    }


def build(out: Path, bugs: Sequence[Bug] = BUGS, path: Path = VERDICTS) -> list[dict[str, Any]]:
    """Write the table of bugs into a dataset directory and return its rows."""
    verdicts = read_verdicts(path)
    rows = []
    for bug in bugs:
        sample = capture(bug)
        row = sample_to_row(sample, derived_columns(sample) | {"split": "train"})
        rows.append(row | bug_columns(bug, verdicts.get(bug.name, {})))
    rows.sort(key=lambda row: (row["num_ops"], row["id"]))
    table = pa.Table.from_pylist(rows, schema=COMPILER_BUGS_SCHEMA)
    write_arrow(table, out / TABLE, COMPILER_BUGS)
    return rows
