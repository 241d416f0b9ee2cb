"""The table of problems: computations of parts with several workloads.

Parts with the same canonical form are one computation. Of its spellings, the one with the most
workloads becomes the problem, so that one program can compute all of them.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphnet_datasets.analysis.attributes import attributes_of
from graphnet_datasets.analysis.splits import SPLITS, split_of
from graphnet_datasets.atomic import replaced_directory
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks import FRAMEWORK_VARIABLE
from graphnet_datasets.isolation import Limits, LocalPool, Work
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema import GRAPHS_SCHEMA, SCHEMA_VERSION
from graphnet_datasets.schema.tables import PROBLEMS
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.mapping import Item, ResumableMap, digest_of
from graphnet_datasets.storage.shards import write_shards
from graphnet_datasets.storage.staging import Staging
from graphnet_datasets.storage.table import read_table, to_arrow
from graphnet_datasets.terminal import counted

from .canonical import calling_convention, canonical_form, kind_of_dtype
from .capturing import EMBEDDED, default_jobs
from .categories import category_of
from .problem_worker import PHASES
from .subgraphs import NAMES

MIN_WORKLOADS = 5
MAX_WORKLOADS = 16
"""Judging takes seconds per workload, so a problem has only its most frequent ones."""

MAX_PER_CATEGORY = 80
"""Maximum number of problems of a category, those that occur in the most families."""

MAX_INPUT_BYTES = 2**28
MAX_FLOPS = 2e10
"""Larger parts are omitted, because a CPU takes seconds for one call."""

LOOSEST_T, TIGHTEST_T = -3, -5
"""Bounds of tolerances. At -5, float32 results may differ by about ten rounding steps."""

LIMITS = Limits(phase_timeouts_s={"compare": 600.0}, memory_bytes=4 * 2**30)
_CHUNK = 16


@dataclasses.dataclass
class Workload:
    """A part with its numbers of occurrences, merged over all tables of parts."""

    config: str
    row: Mapping[str, Any]
    num_occurrences: int
    parents: set[str]
    splits: set[str]

    @property
    def name(self) -> str:
        """The config and the hash of the part."""
        return f"{self.config}:{self.row['subgraph_hash']}"


@dataclasses.dataclass
class Problem:
    """The workloads of one spelling of a computation."""

    form: str
    operators: tuple[str, ...]
    framework: str
    workloads: list[Workload]


def find_problems(dataset: Path) -> list[Problem]:
    """Return the computations of a dataset's parts, each in the spelling with the most workloads.

    Parts that call custom operators, compute nothing, or exceed the limits are omitted. The list
    includes computations with a single workload.

    Raises:
        GraphNetError: the dataset has no parts.
    """
    forms: dict[str, dict[str, dict[str, Workload]]] = {}
    operators: dict[str, tuple[str, ...]] = {}
    for config, row in _parts(dataset):
        if (row["input_bytes"] or 0) > MAX_INPUT_BYTES or (row["flops"] or 0) > MAX_FLOPS:
            continue
        sample = Sample.from_row(row)
        form = canonical_form(sample)
        if sample.custom_operators or not form.operators:
            continue
        operators[form.digest] = form.operators
        spelling = forms.setdefault(form.digest, {}).setdefault(calling_convention(sample), {})
        _merge(spelling, config, row, sample)
    if not forms:
        raise GraphNetError(
            f"`{dataset}` has no parts of graphs. Build them with `python -m builder subgraphs`."
        )
    problems = []
    for form, spellings in sorted(forms.items()):
        _, chosen = max(sorted(spellings.items()), key=lambda item: len(item[1]))
        workloads = sorted(chosen.values(), key=_rank)
        framework = workloads[0].row["framework"]
        problems.append(Problem(form, operators[form], framework, workloads))
    return problems


def build(
    dataset: Path,
    build_directory: Path,
    jobs: int,
    min_workloads: int = MIN_WORKLOADS,
    *,
    max_per_category: int = MAX_PER_CATEGORY,
    measures_all: bool = False,
) -> list[dict[str, Any]]:
    """Write the table of problems into a dataset directory, and return its rows.

    Problems have at least `min_workloads` workloads. Of each category, the `max_per_category`
    problems that occur in the most families are chosen. Each workload is run once by eager and once
    in float64, in a confined process. Finished workloads are stored below `build_directory`, from
    which an interrupted build continues. Unless `measures_all` is true, workloads that the
    dataset's table of problems already has, with the same part, keep their measurements.

    Raises:
        GraphNetError: no computation has enough workloads.
    """
    problems = find_problems(dataset)
    for minimum in (2, 3, 5):
        number = sum(len(problem.workloads) >= minimum for problem in problems)
        print(f"{counted(number, 'computation')} with at least {minimum} workloads", flush=True)
    chosen = [
        dataclasses.replace(problem, workloads=problem.workloads[:MAX_WORKLOADS])
        for problem in _most_frequent(
            (problem for problem in problems if len(problem.workloads) >= min_workloads),
            max_per_category,
        )
    ]
    parts = [part for problem in chosen for part in problem.workloads]
    measured = {} if measures_all else _earlier_measurements(parts, dataset)
    new = [part for part in parts if part.name not in measured]
    print(f"{counted(len(new), 'workload')} to measure of {len(parts)}", flush=True)
    measured |= _measure(new, build_directory, jobs)
    for part in parts:
        if reason := measured[part.name].get("reason"):
            print(f"omitted `{part.row['id']}`: {reason}", flush=True)
    rows = [
        row
        for problem in chosen
        if (row := to_row(problem, measured))["num_workloads"] >= min_workloads
    ]
    if not rows:
        raise GraphNetError(
            f"No computation of `{dataset}` has {counted(min_workloads, 'workload')}. Add graphs, "
            "or lower `--min-workloads`."
        )
    rows.sort(key=lambda row: (row["num_ops"], row["problem_id"]))
    write_rows(rows, dataset)
    write_readme(dataset)
    return rows


def _most_frequent(problems: Iterable[Problem], max_per_category: int) -> list[Problem]:
    """Return the problems of each category that occur in the most families."""
    by_category: dict[str, list[Problem]] = {}
    for problem in problems:
        category = category_of(Sample.from_row(problem.workloads[0].row))
        by_category.setdefault(category, []).append(problem)

    def rank(problem: Problem) -> tuple[int, int, str]:
        num_families = max(part.row["num_families"] for part in problem.workloads)
        num_occurrences = sum(part.num_occurrences for part in problem.workloads)
        return -num_families, -num_occurrences, problem.form

    return [
        problem
        for of_category in by_category.values()
        for problem in sorted(of_category, key=rank)[:max_per_category]
    ]


def split_group_of(operators: Iterable[str]) -> str:
    """Return the split group of a problem, a hash of its set of core operators.

    >>> split_group_of(["mm", "add"]) == split_group_of(["add", "mm", "mm"])
    True
    """
    text = " ".join(sorted(set(operators)))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def tolerance_of(eager_t: float | None) -> float:
    """Return the tolerance t of a workload: ten times the error of eager, within bounds.

    >>> tolerance_of(-5.4), tolerance_of(-1.0), tolerance_of(-math.inf), tolerance_of(None)
    (-4.0, -3.0, -5.0, -3.0)
    """
    if eager_t is None:
        return float(LOOSEST_T)
    if math.isinf(eager_t):
        return float(TIGHTEST_T if eager_t < 0 else LOOSEST_T)
    return float(max(TIGHTEST_T, min(LOOSEST_T, math.ceil(eager_t) + 1)))


def problem_name(operators: Sequence[str], form: str) -> str:
    """Return the id of a problem.

    >>> problem_name(["mm", "sigmoid", "mul", "mul"], "0123456789abcdef")
    'mm-sigmoid-mul-01234567'
    """
    names = [re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:24] for name in operators]
    distinct = [name for place, name in enumerate(names) if place == 0 or names[place - 1] != name]
    return "-".join([*distinct[:4], form[:8]])


def add_problems(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `python -m builder problems`."""
    parser.set_defaults(run=_problems)
    parser.add_argument("--out", type=Path, default=EMBEDDED)
    parser.add_argument("--build", type=Path, default=Path("build/problems"), help="finished work")
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument("--min-workloads", type=int, default=MIN_WORKLOADS)
    parser.add_argument(
        "--max-per-category",
        type=int,
        default=MAX_PER_CATEGORY,
        help="problems of each category, those in the most families first",
    )
    parser.add_argument("--count", action="store_true", help="count the computations, and stop")
    parser.add_argument(
        "--all",
        action="store_true",
        help="measure all workloads, including those that were measured before",
    )
    parser.add_argument(
        "--hidden",
        metavar="SEED",
        help="write the test problems at sizes that follow from this text into a new dataset --out",
    )
    parser.add_argument("--dataset", type=Path, default=EMBEDDED, help="parts for --hidden")
    parser.add_argument("--split", choices=SPLITS, default="test", help="problems for --hidden")


def _problems(options: argparse.Namespace) -> int:
    if options.count:
        problems = find_problems(options.out)
        for minimum in (1, 2, 3, 5, 10):
            enough = [item for item in problems if len(item.workloads) >= minimum]
            by_framework = collections.Counter(item.framework for item in enough)
            kinds = ", ".join(f"{number} {name}" for name, number in sorted(by_framework.items()))
            print(f"at least {minimum} workloads: {len(enough)} computations ({kinds})")
        return 0
    if options.hidden is not None:
        from .hidden import hide

        names = hide(
            options.dataset,
            options.out,
            options.build,
            options.jobs,
            seed=options.hidden,
            split=options.split,
        )
        print(f"{counted(len(names), 'problem')} at hidden sizes in {options.out}")
        return 0
    rows = build(
        options.out,
        options.build,
        options.jobs,
        options.min_workloads,
        max_per_category=options.max_per_category,
        measures_all=options.all,
    )
    categories = collections.Counter(row["category"] for row in rows)
    splits = collections.Counter(split_of(row["split_group"]) for row in rows)
    print(f"{counted(len(rows), 'problem')} in {options.out}")
    for title, counts in (("categories", categories), ("splits", splits)):
        print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    return 0


def _parts(dataset: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for config in NAMES:
        for path in sorted((dataset / config).glob("*.parquet")):
            for batch in read_table(path).to_batches(max_chunksize=1000):
                yield from ((config, row) for row in batch.to_pylist())


def _merge(
    spelling: dict[str, Workload], config: str, row: Mapping[str, Any], sample: Sample
) -> None:
    """Add a part to the workloads of its spelling. Several tables may contain the same part."""
    values = [item.value for item in sample.inputs]
    key = digest_of([values, [(op.args, op.kwargs) for op in sample.ops], sample.symbols])
    workload = spelling.get(key)
    number = row["num_occurrences"] or 1
    if workload is None:
        workload = spelling[key] = Workload(config, row, number, set(), set())
    workload.num_occurrences = max(workload.num_occurrences, number)
    workload.parents.add(row["parent_id"] or row["id"])
    workload.splits.update(row["splits"] or ())


def _rank(workload: Workload) -> tuple[int, str, str]:
    return -workload.num_occurrences, workload.config, workload.row["id"]


def _earlier_measurements(
    workloads: Sequence[Workload], dataset: Path
) -> dict[str, Mapping[str, Any]]:
    """Return the measurements in the dataset's table of problems by workload name."""
    ids = {workload.name: workload.row["id"] for workload in workloads}
    notes: dict[str, Mapping[str, Any]] = {}
    for path in sorted((dataset / PROBLEMS.name).glob("*.parquet")):
        for row in read_table(path, ["workloads"]).to_pylist():
            for item in row["workloads"]:
                name = f"{item['config']}:{item['subgraph_hash']}"
                if ids.get(name) == item["part_id"]:
                    notes[name] = {"bytes": item["bytes"], "eager_t": item["eager_t"]}
    return notes


def _measure(
    workloads: Sequence[Workload], build_directory: Path, jobs: int
) -> dict[str, Mapping[str, Any]]:
    """Return the notes of `problem_worker.compare_row` by workload name."""
    staging = Staging(build_directory / "problems", "problems")
    mapping = ResumableMap(staging, {"memory_limit_bytes": LIMITS.memory_bytes}, LIMITS)
    notes: dict[str, Mapping[str, Any]] = {}
    for framework in sorted({workload.row["framework"] for workload in workloads}):
        work = Work("builder.problem_worker", PHASES, LIMITS, {FRAMEWORK_VARIABLE: framework})
        pool = LocalPool(work, jobs)
        items = (
            Item(
                workload.name,
                digest_of(sorted(workload.row.items())),
                {name: workload.row[name] for name in GRAPHS_SCHEMA.names if name in workload.row},
            )
            for workload in workloads
            if workload.row["framework"] == framework
        )
        try:
            for result in mapping.run(items, pool, chunk=_CHUNK):
                notes[result.name] = result.notes or {"reason": result.lost}
        finally:
            pool.close()
    return notes


def to_row(problem: Problem, measured: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the row of a problem, without the workloads that eager cannot run.

    `measured` has the notes of `problem_worker.compare_row` by workload name.
    """
    usable = [part for part in problem.workloads if "reason" not in measured[part.name]]
    samples = [Sample.from_row(part.row) for part in usable or problem.workloads]
    first = samples[0]
    attributes = [attributes_of(sample) for sample in samples]
    varying = [
        name
        for name in attributes[0]
        if any(other.get(name) != attributes[0][name] for other in attributes)
    ]
    workloads = [
        {
            "config": part.config,
            "part_id": part.row["id"],
            "subgraph_hash": part.row["subgraph_hash"],
            "dtypes": [item["dtype"] for item in part.row["inputs"]],
            "shapes": [item["shape"] for item in part.row["inputs"]],
            "flops": part.row["flops"],
            "bytes": measured[part.name]["bytes"],
            "eager_t": measured[part.name]["eager_t"],
            "tolerance_t": tolerance_of(measured[part.name]["eager_t"]),
            "num_occurrences": part.num_occurrences,
            "parents": sorted(part.parents),
        }
        for part in usable
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "problem_id": problem_name(problem.operators, problem.form),
        "category": category_of(first),
        "framework": problem.framework,
        "operators": list(problem.operators),
        "num_ops": len(problem.operators),
        "num_workloads": len(workloads),
        "num_occurrences": sum(part.num_occurrences for part in usable),
        "num_parents": len({parent for part in usable for parent in part.parents}),
        "split_group": split_group_of(problem.operators),
        "parent_splits": sorted({split for part in usable for split in part.splits}),
        "form": problem.form,
        "inputs": [
            {
                "name": name,
                "role": item.role,
                "kind": kind_of_dtype(item.value.dtype),
                "rank": len(item.value.shape or ()),
            }
            for name, item in zip(first.input_names, first.inputs, strict=True)
        ],
        "attributes": varying,
        "workloads": workloads,
        "licenses": sorted({part.row["license"] or "unknown" for part in usable}),
    }


def write_rows(rows: Sequence[Mapping[str, Any]], dataset: Path) -> None:
    """Replace the folder of problems of a dataset."""
    with replaced_directory(dataset / PROBLEMS.name) as place:
        for split in SPLITS:
            of_split = [row for row in rows if split_of(row["split_group"]) == split]
            if of_split:
                write_shards([to_arrow(of_split, PROBLEMS)], place, split, table=PROBLEMS)
