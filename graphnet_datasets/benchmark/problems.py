"""Problems and verdicts on their solutions.

A problem is a row of the `problems` table together with the parts of graphs that are its workloads.
`judge` runs a solution on all of them as `check` does on one sample.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ..analysis.attributes import attributes_of
from ..compilers import find_entry
from ..compilers.native import BUILD_LOG
from ..compilers.passes import NO_OCCURRENCE, REPLACED
from ..errors import (
    CandidateError,
    DatasetNotFoundError,
    RunError,
    UnknownCompilerError,
    raises_only,
)
from ..frameworks import print_source
from ..paths import check_links
from ..sample import Sample, hash_source
from ..schema import SCHEMA_VERSION, sample_from_row
from ..schema.tables import PROBLEMS, SOLUTIONS, SUBGRAPHS, config_named
from ..scores.variants import TOLERANCE
from ..storage.layout import layout_of, write_readme
from ..storage.loading import locate
from ..storage.local_rows import read_local_rows
from ..storage.selection import choose, select_rows
from ..storage.table import read_table, to_arrow, write_arrow
from ..suggestions import did_you_mean
from ..terminal import counted, printable_line
from ..version import __version__
from .checking import CheckResult, describe_check, reference_of_candidate
from .judging.roofline import PeakRates, floor_ms, load_peak_rates, peak_rates
from .records.environment import describe_environment, environment_id
from .runner import run_records
from .settings import Settings
from .solution_files import language_of, read_solution, reference_of_text

COMPILER = "compiler"
"""The language of a solution whose source is the name of a compiler."""

Solution: TypeAlias = "str | os.PathLike[str] | Callable[..., Any]"
"""A solution's text, the path of its file, or a function or class."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """A computation with its workloads.

    `row` is a row of the `problems` table. `parts` are the rows of the workloads, in order. With
    `are_graphs`, these are whole graphs that may contain the computation; see `on_graphs`.
    """

    row: Mapping[str, Any]
    parts: Sequence[Mapping[str, Any]] = dataclasses.field(repr=False)
    are_graphs: bool = False

    @property
    def id(self) -> str:
        """The id of the problem."""
        return self.row["problem_id"]

    @property
    def workloads(self) -> Sequence[Mapping[str, Any]]:
        """The workloads of the row."""
        return self.row["workloads"]

    def prompt(self, peaks: PeakRates | None = None) -> str:
        """Return the problem as one text: reference source, workloads, bound and rules.

        With `peaks`, each workload has its bound in microseconds.
        """
        sample = Sample.from_row(self.parts[0])
        lines = [
            f"# Problem {self.id}",
            "",
            f"Category: {self.row['category']}. "
            f"Core operators: {', '.join(self.row['operators'])}.",
            "",
            "## Reference (first workload)",
            "",
            "```python",
            print_source(sample).strip(),
            "```",
            "",
            "## Inputs, in order",
            "",
        ]
        lines += [
            f"- `{item['name']}`: {item['role']}, {item['kind']}, rank {item['rank']}"
            for item in self.row["inputs"]
        ]
        if self.row["attributes"]:
            names = ", ".join(f"`{name}`" for name in self.row["attributes"])
            lines += [
                "",
                f"The workloads differ in the arguments {names}. `op0_dim` is the argument `dim` "
                "of operator 0 of the reference; `op0_arg1` is its second argument. A parameter, "
                "or a constant of `graphnet.h`, with such a name has the value.",
            ]
        lines += ["", f"## Workloads ({len(self.workloads)})", ""]
        lines += [f"- {self._describe(place, peaks)}" for place in range(len(self.workloads))]
        return "\n".join([*lines, "", "## Rules", "", RULES])

    def _describe(self, place: int, peaks: PeakRates | None) -> str:
        workload, part = self.workloads[place], self.parts[place]
        shapes = zip(workload["dtypes"], workload["shapes"], strict=True)
        words = [", ".join(f"{dtype}{list(shape or ())}" for dtype, shape in shapes)]
        values = attributes_of(Sample.from_row(part))
        words += [f"{name} = {values[name]}" for name in self.row["attributes"] if name in values]
        words.append(f"t = {workload['tolerance_t']:g}")
        words.append(f"{workload['flops'] or 0:,} operations, {workload['bytes'] or 0:,} bytes")
        if peaks is not None:
            bound = floor_ms(workload["flops"], workload["bytes"], part["dtype"], peaks)
            words.append(f"bound {1000 * bound:.2f} us")
        return "; ".join(words)


RULES = """\
Write one file. Python: define one function `candidate` with the inputs in order, weights included,
that returns the outputs of the reference; or a `torch.nn.Module` whose constructor takes weights by
name. C++ and CUDA: see `graphnet check --help`. The solution must be right on every workload at its
tolerance t, and it is timed on the same workloads, with new inputs in each call. Outputs must be
newly computed in each call, in the dtype of the reference and with at least its precision. Inputs
and weights must not be changed unless the reference changes them. A solution that returns stored
answers, writes to foreign memory, leaves work running, or changes the measurement is rejected."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The verdict on a solution of a problem.

    `results` has the verdict on each workload, and `bounds_ms` the shortest times that the peak
    rates of the device allow. `error` explains why a solution could not be run at all; otherwise
    workers load the solution by `reference`. `num_absent` is the number of whole graphs in which
    the pattern of a pass does not occur; they have no result.
    """

    problem_id: str
    form: str
    language: str
    source: str
    device: str
    threads: int
    results: tuple[CheckResult, ...]
    bounds_ms: tuple[float, ...]
    error: str = ""
    reference: str = ""
    num_absent: int = 0

    @property
    def is_accepted(self) -> bool:
        """True if the outputs are right on all workloads."""
        return bool(self.results) and all(result.is_right for result in self.results)

    @property
    def cheats(self) -> tuple[str, ...]:
        """The distinct cheats that the judge detected, in order."""
        return tuple(dict.fromkeys(result.cheat for result in self.results if result.cheat))

    @property
    def build_log(self) -> str:
        """The output of the compiler of a C++ or CUDA file."""
        for result in self.results:
            for warning in result.record["warnings"] or ():
                if warning.startswith(BUILD_LOG):
                    return warning.removeprefix(BUILD_LOG)
            if (result.record["error_type"] or "").endswith("CandidateError"):
                return result.record["error_message"] or ""
        return self.error

    @property
    def num_replaced(self) -> int:
        """The number of occurrences that a pass with a pattern replaced in all graphs."""
        warnings = [text for result in self.results for text in result.record["warnings"] or ()]
        texts = [text.removeprefix(REPLACED) for text in warnings if text.startswith(REPLACED)]
        return sum(int(text.split()[0].replace(",", "")) for text in texts)

    @property
    def speedup(self) -> float | None:
        """The geometric mean of the speedups over eager, or None if not accepted."""
        return math.exp(statistics.fmean(self._logarithms("speedup"))) if self.is_accepted else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of `speedup`, from the independent intervals of the workloads.

        The standard error of the mean logarithm is the root of the sum of squares, divided by n.
        """
        if not self.is_accepted:
            return None
        mean = statistics.fmean(self._logarithms("speedup"))
        pairs = zip(self._logarithms("speedup_low"), self._logarithms("speedup_high"), strict=True)
        half = math.hypot(*((high - low) / 2 for low, high in pairs)) / len(self.results)
        return math.exp(mean - half), math.exp(mean + half)

    @property
    def shares_of_bound(self) -> tuple[float | None, ...]:
        """The bound divided by the median time of a call, for each workload that ran."""
        shares = []
        for result, bound in zip(self.results, self.bounds_ms, strict=True):
            times = result.record["candidate_latency_ms"]
            shares.append(bound / statistics.median(times) if times and bound else None)
        return tuple(shares)

    @property
    def share_of_bound(self) -> float | None:
        """The geometric mean of `shares_of_bound`, or None if not accepted or unknown."""
        shares = [share for share in self.shares_of_bound if share]
        if not self.is_accepted or not shares:
            return None
        return statistics.geometric_mean(shares)

    def lines(self) -> list[str]:
        """Return the lines that describe the verdict; the first is the summary."""
        number = sum(result.is_right for result in self.results)
        if self.error:
            return [printable_line(line) for line in self.error.splitlines()]
        word = "accepted" if self.is_accepted else "REJECTED"
        summary = f"{self.problem_id}  {word}  right on {number} of {len(self.results)} workloads"
        if self.speedup is not None and self.interval is not None:
            low, high = self.interval
            summary += f"  {self.speedup:.2f}x [{low:.2f}, {high:.2f}]"
        if self.share_of_bound is not None:
            summary += f"  {self.share_of_bound:.1%} of the bound"
        lines = [summary, *(f"  {line}" for result in self.results for line in result.lines())]
        if self.num_replaced or self.num_absent:
            lines.append(
                f"{counted(self.num_replaced, 'occurrence')} replaced in "
                f"{counted(len(self.results), 'graph')}; "
                f"{counted(self.num_absent, 'graph')} without an occurrence"
            )
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a JSON-compatible mapping."""
        verdicts = zip(self.results, self.shares_of_bound, self.bounds_ms, strict=True)
        return {
            "problem_id": self.problem_id,
            "language": self.language,
            "is_accepted": self.is_accepted,
            "speedup": self.speedup,
            "interval": self.interval,
            "share_of_bound": self.share_of_bound,
            "cheats": self.cheats,
            "build_log": self.build_log,
            "error": self.error,
            "num_replaced": self.num_replaced,
            "num_absent": self.num_absent,
            "workloads": [
                {**result.to_dict(), "tolerance_t": result.tolerance_t, "share_of_bound": share,
                 "bound_ms": bound}
                for result, share, bound in verdicts
            ],
        }  # fmt: skip

    def to_row(self, *, name: str = "", author: str = "", license: str = "") -> dict[str, Any]:
        """Return the row of `SOLUTIONS_SCHEMA`."""
        source_hash = hash_source(self.source)
        identity = (self.problem_id, source_hash, self.language, self.device, self.threads)
        low, high = self.interval or (None, None)
        described = describe_environment(self.device)
        return {
            "schema_version": SCHEMA_VERSION,
            "solution_id": hash_source(json.dumps(identity))[:32],
            "problem_id": self.problem_id,
            "form": self.form,
            "name": name or self._compiler_name(),
            "author": author,
            "license": license,
            "language": self.language,
            "source_hash": source_hash,
            "source": self.source,
            "build_log": self.build_log,
            "device": self.device.partition(":")[0],
            "device_name": str(described["gpu"] or described["cpu"] or ""),
            "threads": self.threads,
            "is_accepted": self.is_accepted,
            "speedup": self.speedup,
            "speedup_low": low,
            "speedup_high": high,
            "share_of_bound": self.share_of_bound,
            "verdicts": [
                _verdict_row(result, share)
                for result, share in zip(self.results, self.shares_of_bound, strict=True)
            ],
            "library_version": __version__,
        }

    def _compiler_name(self) -> str:
        """Return the name and version of the compiler, or "" for other solutions."""
        if self.language != COMPILER or not self.results:
            return ""
        return f"{self.source} {self.results[0].record['compiler_version']}".strip()

    def _logarithms(self, name: str) -> list[float]:
        return [math.log(result.record[name]) for result in self.results]


def on_graphs(
    problem: Problem, *, source: str | os.PathLike[str] = "graphnet", limit: int | None = None
) -> Problem:
    """Return a problem with whole graphs as workloads: those that may contain the computation.

    A graph may contain it if it has all operators of a workload. A pass is judged on the graphs in
    which its pattern occurs, so its speedup is that of real models. The tolerance is t = -3, and
    the bound counts operations only.

    Args:
        problem: the problem.
        source: the dataset of the graphs.
        limit: the number of graphs. Those from which the workloads come are chosen first, and then
            those with the fewest operators. Default: all.

    Raises:
        DatasetNotFoundError: the dataset contains no such graph.
    """
    needed = {frozenset(_operator_names(part["op_histogram"])) for part in problem.parts}
    histograms = choose("all", dataset=source).stream(("num_ops", "op_histogram"))
    parents = {
        parent for workload in problem.row["workloads"] for parent in workload.get("parents", ())
    }
    names = [
        (row["id"] not in parents, row["num_ops"], row["id"])
        for row in histograms
        if row["framework"] == problem.parts[0]["framework"]
        and any(operators <= _operator_names(row["op_histogram"]) for operators in needed)
    ]
    if not names:
        raise DatasetNotFoundError(
            f"No graph of `{source}` has the operators of `{problem.id}`. Choose another dataset, "
            "or judge the pass on the workloads of the problem."
        )
    rows = select_rows([name for *_, name in sorted(names)[:limit]], dataset=source)
    workloads = [
        {
            "config": row["task"],
            "part_id": row["id"],
            "flops": row["flops"],
            "bytes": 0,
            "tolerance_t": float(TOLERANCE),
        }
        for row in rows
    ]
    return Problem({**problem.row, "workloads": workloads}, rows, are_graphs=True)


def _operator_names(histogram: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the last parts of the operators' names: `relu` for all spellings of it."""
    return {item["target"].rpartition(".")[2] for item in histogram}


def is_problem_id(text: str) -> bool:
    """Return whether a name has the form of a problem's id, which ends with eight hex digits.

    >>> is_problem_id("mm-relu-0123abcd"), is_problem_id("torch/resnet-18"), is_problem_id("cv")
    (True, False, False)
    """
    return re.fullmatch(r"[a-z0-9_]+(-[a-z0-9_]+)*-[0-9a-f]{8}", text) is not None


@raises_only(RunError)
def load_problem(name: str, *, source: str | os.PathLike[str] = "graphnet") -> Problem:
    """Return a problem of a dataset with its workloads.

    Raises:
        DatasetNotFoundError: the dataset has no problems, or none with this id.
        RunError: a workload is missing in the dataset, or has changed.
    """
    (problem,) = load_problems([name], source=source)
    return problem


@raises_only(RunError)
def load_problems(
    names: Sequence[str] | None = None, *, source: str | os.PathLike[str] = "graphnet"
) -> list[Problem]:
    """Return problems of a dataset, by default all, and read each of its tables only once.

    Raises:
        DatasetNotFoundError: the dataset has no problems, or lacks one of the ids.
        RunError: a workload is missing in the dataset, or has changed.
    """
    place = locate(source)
    if not isinstance(place, Path):
        raise DatasetNotFoundError(
            f"Problems are read from a local dataset, but `{place}` is remote. Export it first "
            "with `graphnet export`."
        )
    rows = {row["problem_id"]: row for row in read_local_rows(place, PROBLEMS.name)}
    for name in names or ():
        if name not in rows:
            raise DatasetNotFoundError(
                f"There is no problem `{name}`.{did_you_mean(name, rows)} List the problems with "
                "`graphnet list problems`."
            )
    chosen = list(rows.values()) if names is None else [rows[name] for name in names]
    parts = _read_parts([item for row in chosen for item in row["workloads"]], place)
    return [Problem(row, _parts_of(row, parts)) for row in chosen]


@raises_only(RunError)
def judge(
    problem: Problem | str,
    source: Solution,
    *,
    language: str = "",
    device: str = "cpu",
    dataset: str | os.PathLike[str] = "graphnet",
    settings: Settings | None = None,
    **changes: Any,
) -> Verdict:
    """Judge and time a solution on all workloads of a problem.

    The solution is built and called only in confined processes. A solution that cannot be compiled,
    crashes or hangs gets a verdict. The function has no global state, so that loops, threads and
    several processes may call it.

    Args:
        problem: a problem, or its id in `dataset`.
        source: the text of a solution, the path of a file (a `Path`), a function or a class.
        language: `python`, `cpp`, `cuda` or `tc`, if `source` is text. By default, it follows from
            the source. With `compiler`, `source` is the name of a compiler: a baseline.
        device: `cpu`, `cuda` or `cuda:N`.
        dataset: the dataset of the problem.
        settings: how to run the workloads; `changes` are settings by name, as in `run`.

    Raises:
        DatasetNotFoundError: there is no such problem.
        RunError: a setting is invalid.
    """
    if isinstance(problem, str):
        problem = load_problem(problem, source=dataset)
    chosen = dataclasses.replace(settings or Settings(), **changes)
    (verdict,) = judge_all(problem, [(source, language)], device, chosen)
    return verdict


def judge_all(
    problem: Problem,
    solutions: Sequence[tuple[Solution, str]],
    device: str,
    settings: Settings,
) -> list[Verdict]:
    """Judge solutions with their languages, "" if unknown, as `judge` does.

    Their processes are forks of one server, which saves seconds for each solution.
    """
    verdicts = _prepare(problem, solutions, device, settings)
    references = list(dict.fromkeys(item.reference for item in verdicts if item.reference))
    if not references:
        return verdicts
    records = run_records(
        list(problem.parts), references, device, settings=settings, on_record=lambda _: None
    )
    return _judged(problem, verdicts, records.to_pylist(), device, settings)


def baselines_of(
    problem: Problem,
    compilers: Sequence[str],
    records: Iterable[Mapping[str, Any]],
    device: str,
    settings: Settings,
) -> list[Verdict]:
    """Return verdicts on compilers, given the records of a run of all workloads.

    The verdicts are those of `judge` with `language="compiler"`. The run may include the workloads
    of other problems.

    Raises:
        KeyError: a workload has no record under a compiler.
    """
    solutions = [(name, COMPILER) for name in compilers]
    return _judged(
        problem, _prepare(problem, solutions, device, settings), records, device, settings
    )


def _prepare(
    problem: Problem,
    solutions: Sequence[tuple[Solution, str]],
    device: str,
    settings: Settings,
) -> list[Verdict]:
    """Return a verdict without results for each solution, with its reference or an error."""
    verdicts = []
    for source, language in solutions:
        empty = Verdict(
            problem.id, problem.row["form"], language, "", device, settings.threads, (), ()
        )
        verdicts.append(_prepared(empty, source, problem.row["framework"]))
    return verdicts


def _judged(
    problem: Problem,
    verdicts: Sequence[Verdict],
    records: Iterable[Mapping[str, Any]],
    device: str,
    settings: Settings,
) -> list[Verdict]:
    """Return the verdicts with the results of their records; those without a reference are kept."""
    by_key = {(row["compiler"], row["sample_id"]): row for row in records}
    peaks = _peaks(device, settings.threads)
    bounds = {
        part["id"]: floor_ms(workload["flops"], workload["bytes"], str(part["dtype"]), peaks)
        for workload, part in zip(problem.workloads, problem.parts, strict=True)
    }
    return [
        _complete(verdict, problem, by_key, bounds) if verdict.reference else verdict
        for verdict in verdicts
    ]


def _complete(
    verdict: Verdict,
    problem: Problem,
    records: Mapping[tuple[str, str], Mapping[str, Any]],
    bounds_ms: Mapping[str, float],
) -> Verdict:
    """Return a verdict with the results that follow from the records of its solution."""
    results = [
        describe_check(records[verdict.reference, item["part_id"]], item["tolerance_t"])
        for item in problem.workloads
    ]
    applicable = [
        result for result in results if not (problem.are_graphs and _lacks_pattern(result))
    ]
    return dataclasses.replace(
        verdict,
        results=tuple(applicable),
        bounds_ms=tuple(bounds_ms[result.sample_id] for result in applicable),
        num_absent=len(results) - len(applicable),
    )


def _lacks_pattern(result: CheckResult) -> bool:
    return (result.record["error_message"] or "").startswith(NO_OCCURRENCE)


def _prepared(verdict: Verdict, source: Solution, framework: str) -> Verdict:
    """Return a verdict with the text, the language and the reference of a solution, or an error."""
    text, language = "", verdict.language
    try:
        if language == COMPILER:
            text = reference = str(source)
            find_entry(text, framework)
        elif isinstance(source, os.PathLike):
            path = Path(os.path.realpath(Path(source).expanduser()))
            text, language = read_solution(path)
            reference = reference_of_candidate(path)
        elif isinstance(source, str):
            text = source.encode(errors="replace").decode()  # surrogates cannot be stored
            language = language or language_of(text)
            reference = reference_of_text(text, language)
        else:
            reference = reference_of_candidate(source)
            path = Path(reference.rpartition(":")[0])
            text, language = path.read_text() if path.is_file() else "", "python"
    except (CandidateError, UnknownCompilerError) as error:
        return dataclasses.replace(verdict, source=text, language=language, error=str(error))
    return dataclasses.replace(verdict, source=text, language=language, reference=reference)


def write_solution(row: Mapping[str, Any], directory: str | os.PathLike[str]) -> Path:
    """Add a row to the table of solutions in a dataset directory, and return its file.

    Each solution has its own file, so that several processes may write at the same time. An earlier
    row of the same solution is replaced.

    Raises:
        UnsafePathError: a link leads out of the directory.
    """
    name = f"{SOLUTIONS.name}/train-{row['solution_id']}.parquet"
    check_links(Path(directory), name)
    path = Path(directory, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_arrow(to_arrow([row], SOLUTIONS), path, SOLUTIONS)
    write_readme(Path(directory))
    return path


def read_stored_solution(reference: str, *, trust_remote_code: bool) -> tuple[str, str]:
    """Return text and language of a stored solution, `directory:solution_id`.

    Raises:
        RunError: `trust_remote_code` is False, or there is no such solution.
    """
    place, _, name = reference.rpartition(":")
    if not trust_remote_code:
        raise RunError(
            f"`{reference}` is the code of a stored solution, which may come from others. Read it "
            "first, and then pass `--trust-remote-code`."
        )
    for path in sorted(Path(place).glob(f"{SOLUTIONS.name}/*.parquet")):
        for row in read_table(path, filters=[("solution_id", "=", name)]).to_pylist():
            if hash_source(row["source"]) == row["source_hash"]:
                return row["source"], row["language"]
    raise RunError(
        f"`{place}` has no intact solution `{name}`. List the solutions with "
        f"`graphnet list solutions --dataset {place}`."
    )


def _verdict_row(result: CheckResult, share: float | None) -> dict[str, Any]:
    record = result.record
    times = record["candidate_latency_ms"]
    return {
        "part_id": result.sample_id,
        "outcome": str(result.outcome),
        "cheat": result.cheat,
        "min_t": record["min_t"],
        "tolerance_t": result.tolerance_t,
        "speedup": record["speedup"],
        "speedup_low": record["speedup_low"],
        "speedup_high": record["speedup_high"],
        "latency_ms": statistics.median(times) if times else None,
        "share_of_bound": share,
        "message": record["error_message"] or "",
    }


def _read_parts(
    workloads: Iterable[Mapping[str, Any]], dataset: Path
) -> dict[str, Mapping[str, Any]]:
    """Return the parts of workloads that the dataset contains, by their hashes."""
    ids: dict[str, list[str]] = {}
    for workload in workloads:
        ids.setdefault(workload["config"], []).append(workload["part_id"])
    parts = {}
    for config in ids.keys() & layout_of(dataset).configs.keys():
        if config_named(config).table is SUBGRAPHS:
            for part in read_local_rows(dataset, config, ids[config]):
                parts[part["subgraph_hash"]] = part
    return parts


def _parts_of(
    row: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the parts of a problem in the order of its workloads."""
    missing = [item for item in row["workloads"] if item["subgraph_hash"] not in parts]
    if missing:
        raise RunError(
            f"{counted(len(missing), 'workload')} of `{row['problem_id']}` are not in the dataset, "
            f"for example `{missing[0]['part_id']}` of `{missing[0]['config']}`. Build the table "
            "again with `python -m builder problems`."
        )
    chosen = [parts[workload["subgraph_hash"]] for workload in row["workloads"]]
    for part in chosen:
        sample_from_row(part)
    return chosen


def _peaks(device: str, threads: int) -> PeakRates:
    """Return the peak rates of the device, which most calls read from the cache."""
    environment = environment_id(describe_environment(device))
    cached = load_peak_rates(device, environment, threads)
    return cached or peak_rates(device, num_threads=threads)
