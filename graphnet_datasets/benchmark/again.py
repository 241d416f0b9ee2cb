"""Rerun of a run from its record: the same sample, compiler, settings and judged inputs."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from ..compilers.options import Option
from ..compilers.registry import find_entry, is_installed
from ..decoding import load_json
from ..errors import RunError, UntrustedCodeError, raises_only
from ..json_text import parse_json
from ..schema import sample_from_row
from ..scores.variants import TOLERANCE
from ..storage.loading import DEFAULT_NAME
from ..storage.selection import LIST, is_path, select_rows
from .executors.sample_runner import SampleJob, SampleRunner
from .handover import JudgedCall
from .records.earlier import find_differences
from .records.environment import describe_environment, environment_id
from .records.records import RunStore, make_run_id, read_runs, sample_digest
from .settings import Settings


@dataclasses.dataclass(frozen=True)
class Again:
    """A repeated run: both records, and the number of calls with bit-equal outputs.

    `num_calls` counts the calls that were judged in both runs, on the same inputs and elements.
    """

    before: Mapping[str, Any]
    record: Mapping[str, Any]
    num_calls: int
    num_baseline_equal: int
    num_candidate_equal: int

    @property
    def differences(self) -> list[str]:
        """The differences between the two runs: versions, source and fields of the environment."""
        return find_differences(self.before, self.record)

    def __str__(self) -> str:
        before, now = self.before, self.record
        lines = [
            f"{now['compiler']} on {now['sample_id']}: {_ending(now)}, before {_ending(before)}.",
            f"Of {self.num_calls} calls on the same inputs eager gave the same bits in "
            f"{self.num_baseline_equal}, {now['compiler']} in {self.num_candidate_equal}.",
        ]
        if self.differences:
            lines.append(f"The runs differ in {', '.join(self.differences)}.")
        return "\n".join(lines)


@raises_only(RunError)
def load_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return one record: of a directory or file by its id, `runs/RUN_ID`, or its only record.

    Raises:
        DatasetNotFoundError: there are no records.
        RunError: there are several records, or none with this id.
    """
    path = Path(path)
    place, run_id = (path, None) if path.exists() else (path.parent, path.name)
    rows = read_runs(place).to_pylist()
    matches = [row for row in rows if run_id in (None, row["run_id"])]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise RunError(
            f"`{place}` contains no run `{run_id}`. Its {len(rows)} runs have ids such as "
            f"`{rows[0]['run_id']}`; pass one as `{place / rows[0]['run_id']}`."
        )
    raise RunError(
        f"`{place}` contains {len(matches)} runs. Pass one by its id, as in "
        f"`{place / matches[0]['run_id']}`."
    )


@raises_only(RunError)
def run_again(
    record: str | os.PathLike[str] | Mapping[str, Any],
    *,
    out: str | os.PathLike[str] | None = None,
    dataset: str | os.PathLike[str] | None = None,
    trust_remote_code: bool = False,
) -> Again:
    """Repeat the run of a record and compare the outputs bit by bit on the same inputs.

    The first timed pairs repeat the calls that were judged before, and these calls are judged along
    with new ones. `record` is a row of the `runs` table or its path (`load_record`). `out` receives
    the new record. `dataset` is where the sample is looked up, by default the dataset of the
    record. Without `trust_remote_code` the record may name only installed compilers and the
    embedded dataset (`check_names`), and custom operators do not run, whatever its settings.

    Raises:
        UntrustedCodeError: the record names a compiler, an option or a dataset that needs
            `trust_remote_code`.
        RunError: the sample has changed since the record, or the record is incomplete.
        DatasetNotFoundError, CompilerError: the sample or the compiler is missing.
    """
    before = load_record(record) if isinstance(record, str | os.PathLike) else dict(record)
    options = parse_json(before["compiler_options"] or "{}")
    if not isinstance(options, dict):
        raise RunError(
            f"The options of the run `{before['run_id']}` are not a JSON object. Run the sample "
            "again with `graphnet run`."
        )
    if not trust_remote_code:
        check_names(before, options, is_dataset_named=dataset is not None)
    settings = Settings.from_json(load_json(before["settings"] or "{}", "the settings of a run"))
    settings = dataclasses.replace(
        settings, trust_remote_code=settings.trust_remote_code and trust_remote_code
    )
    row = _find_row(before, dataset)
    sample = sample_from_row(row)
    if before["sample_digest"] not in (None, sample_digest(sample)):
        raise RunError(
            f"The sample `{sample.id}` has changed since the record: its graph, its statistics or "
            "its stored data differ. Pass the version of the dataset of that run with `--dataset`."
        )
    device = before["device"] if ":" in before["device"] else before["device"].partition(":")[0]
    environment = describe_environment(device)
    runner = SampleRunner(
        device,
        settings,
        (environment_id(environment), json.dumps(environment, sort_keys=True)),
        log_directory=None if out is None else Path(out, "logs"),
        compilers=[before["compiler"]],
        again=_judged_calls(before),
    )
    try:
        candidate = runner.find_candidate(before["compiler"], sample.framework, options)
        moment = datetime.datetime.now(datetime.UTC).isoformat()
        run_id = make_run_id(sample, again=before["run_id"], moment=moment)
        (now,) = runner.run(SampleJob(sample, row, [(run_id, candidate)]))
    finally:
        runner.close()
    now["dataset"] = before["dataset"] if dataset is None else str(dataset)
    if out is not None:
        store = RunStore(out)
        store.append(now)
        store.compact()
    return _compared(before, now)


def check_names(
    record: Mapping[str, Any], options: Mapping[str, Any], *, is_dataset_named: bool
) -> None:
    """Check that an untrusted record cannot import code or access files of the user.

    The compiler must be built in, registered or installed. The sample must be an id in the embedded
    dataset or in a dataset that the user names. Options may be numbers, booleans and declared
    choices of a built-in compiler: a string could name a file, and a dictionary a program to start.

    Raises:
        UntrustedCodeError: a name could import code or access files.
    """
    compiler, sample_id = str(record["compiler"]), str(record["sample_id"])
    if not is_installed(compiler):
        _refuse_name("compiler", compiler)
    place = record["dataset"]
    if not is_dataset_named and place is not None and place != DEFAULT_NAME:
        _refuse_name("dataset", place, ", or name a dataset with `--dataset`")
    if is_path(sample_id) or sample_id.startswith(LIST):
        _refuse_name("sample", sample_id)
    unchecked = {
        name: value
        for name, value in options.items()
        if value and not isinstance(value, bool | int | float)
    }
    if not unchecked:
        return
    entry = find_entry(compiler, str(record["framework"]))
    declared: Mapping[str, Option] = {}
    if entry.origin == "built in":
        declared = entry.load().option_table
    for name, value in unchecked.items():
        option = declared.get(name)
        if option is None or value not in (option.default, *option.choices):
            _refuse_name("option", f"{name} = {value!r}")


def _refuse_name(kind: str, name: str, otherwise: str = "") -> NoReturn:
    raise UntrustedCodeError(
        f"The record names the {kind} `{name}`. This name could run code or read files on this "
        "machine. If you trust its author, pass "
        f"`--trust-remote-code` (`trust_remote_code=True`){otherwise}."
    )


def _find_row(before: Mapping[str, Any], dataset: str | os.PathLike[str] | None) -> dict[str, Any]:
    place = before["dataset"] if dataset is None else dataset
    if place is None:
        raise RunError(
            f"The record does not contain the dataset of `{before['sample_id']}`, because the "
            "sample was passed as an object. Pass the dataset with `--dataset`."
        )
    is_file = str(place).startswith("/") or str(place).endswith(".parquet")
    rows = select_rows(place if is_file else before["sample_id"], dataset=place)
    problems = [
        row
        for row in rows
        if (row["id"], row["framework"]) == (before["sample_id"], before["framework"])
    ]
    if not problems:
        raise RunError(
            f"`{place}` contains no sample `{before['sample_id']}` of {before['framework']}. Pass "
            "another dataset with `--dataset`."
        )
    return problems[0]


def _judged_calls(before: Mapping[str, Any]) -> list[JudgedCall]:
    return [
        JudgedCall(call["seed"] - before["seed"], call["start"], call["is_candidate_first"])
        for call in before["judged"] or ()
        if call["is_candidate_first"] is not None
    ]


def _compared(before: Mapping[str, Any], now: Mapping[str, Any]) -> Again:
    earlier = {(call["seed"], call["start"]): call for call in before["judged"] or ()}
    pairs = [
        (earlier[call["seed"], call["start"]], call)
        for call in now["judged"] or ()
        if (call["seed"], call["start"]) in earlier
    ]
    equal = [
        sum(left[name] == right[name] for left, right in pairs)
        for name in ("baseline_hash", "candidate_hash")
    ]
    return Again(before, now, len(pairs), *equal)


def _ending(record: Mapping[str, Any]) -> str:
    if record["speedup"] is None:
        return f"{record['status']} ({record['reason']})" if record["reason"] else record["status"]
    if record["min_t"] is None or record["min_t"] > TOLERANCE:
        return f"{record['status']}, but not right at t = {TOLERANCE}"
    low, high = record["speedup_low"], record["speedup_high"]
    interval = "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
    return f"{record['status']}, speedup {record['speedup']:.3f}{interval}"
