"""Verdicts that `graphnet run` prints: a line per run, then the lines about each compiler."""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..terminal import counted, first_few, printable_line
from .terminal import echo

BUSY_SHARE = 0.1
"""Smallest reported share of the processors that other processes used."""
MAX_NAMED = 3
"""Maximum number of wrong or failed graphs named per compiler."""
JSON_COLUMNS = (
    *("run_id", "sample_id", "compiler", "compiler_version", "compiler_options", "device"),
    *("status", "speedup", "speedup_low", "speedup_high", "min_t", "error_type", "error_message"),
)
"""Columns of a record that `graphnet run --json` prints."""
_NAME_WIDTH = 32


class VerdictPrinter:
    """Prints the verdict of each run as it ends, and the verdict on each compiler at the end.

    `out` is the directory of the records. With `is_json`, each line is a JSON object: one per run,
    then one per compiler.
    """

    def __init__(self, out: Path, *, is_json: bool = False) -> None:
        self._out, self._is_json = out, is_json
        self._width = _NAME_WIDTH
        self._has_header = False

    def show(self, record: Mapping[str, Any]) -> None:
        """Print the line of one run; wrong and failed ones are red on a terminal."""
        from ..scores import Outcome
        from ..scores.summary_text import describe_run, short_compiler

        if self._is_json:
            outcome, line = describe_run(record)
            verdict = {"outcome": str(outcome), "verdict": " ".join(line.split())}
            echo(json.dumps({name: record.get(name) for name in JSON_COLUMNS} | verdict))
            return
        if not self._has_header:
            echo(f"{_describe_machine(record)}\n")
            self._has_header = True
        outcome, line = describe_run(record)
        name = printable_line(f"{record['sample_id']}  {short_compiler(record['compiler'])}")
        self._width = max(self._width, len(name))
        is_bad = outcome in (Outcome.WRONG, Outcome.FAILED)
        echo(f"  {name.ljust(self._width)}  {line}", colour="red" if is_bad else None)

    def close(self, runs: Any, expected: Collection[tuple[str, str]] = ()) -> bool:
        """Print the verdict on each compiler; return whether a run is wrong or failed.

        Runs of the samples and compilers in `expected` are printed, and do not count as failures.
        """
        from ..benchmark.commands import bisect_command_of
        from ..scores import Outcome, as_table, split_arms, summarise_arms
        from ..scores.summary_text import closing_lines, with_short_names

        table = as_table(runs)
        if self._is_json:
            return self._close_json(
                summarise_arms(split_arms(table), duplicates="newest"), expected
            )
        echo("")
        if busy := describe_load(table["other_cpu_share"].to_pylist()):
            echo(busy)
        has_failures = False
        summaries, _ = with_short_names(summarise_arms(split_arms(table), duplicates="newest"))
        for summary in summaries:
            bad = summary.with_outcome(Outcome.WRONG) + summary.with_outcome(Outcome.FAILED)
            has_failures |= any((name, summary.compiler) not in expected for name in bad)
            first, *others = closing_lines(summary)
            echo(first, colour="red" if bad else None)
            for line in others:
                echo(line)
            records = {
                row["sample_id"]: row
                for row in table.to_pylist()
                if (row["compiler"] or "") == summary.compiler
            }
            for outcome, word in ((Outcome.WRONG, "Wrong"), (Outcome.FAILED, "Failed")):
                names = summary.with_outcome(outcome)
                if names:
                    command = bisect_command_of(records[names[0]])
                    shown = first_few([printable_line(name) for name in names], MAX_NAMED)
                    echo(f"{word}: {shown} ({command}).", colour="red")
        echo(f"Records: {self._out} (graphnet score {self._out}, graphnet plot {self._out})")
        return has_failures

    def _close_json(self, summaries: Any, expected: Collection[tuple[str, str]]) -> bool:
        from ..scores import Outcome

        has_failures = False
        for summary in summaries:
            bad = summary.with_outcome(Outcome.WRONG) + summary.with_outcome(Outcome.FAILED)
            has_failures |= any((name, summary.compiler) not in expected for name in bad)
            echo(json.dumps({"compiler": summary.compiler} | summary.to_dict()))
        return has_failures


def _describe_machine(record: Mapping[str, Any]) -> str:
    """Return the first line of a run: the baseline, the processor or GPU and the threads."""
    environment = json.loads(record.get("environment") or "{}")
    device = record.get("device") or "cpu"
    if device == "cpu":
        model = (environment.get("cpu") or {}).get("model") or ""
    else:
        model = (environment.get("gpu") or {}).get("name") or ""
    threads = record.get("num_threads")
    details = [model] if model else []
    if threads:
        details.append(counted(threads, "thread"))
    place = f"{device} ({', '.join(details)})" if details else device
    return printable_line(f"Speedups over {record.get('baseline') or 'eager'} on {place}")


def describe_load(shares: Sequence[float | None]) -> str:
    """Return a sentence about other processes on the machine, "" if it was quiet."""
    known_shares = [share for share in shares if share is not None]
    share = statistics.median(known_shares) if known_shares else 0.0
    if share < BUSY_SHARE:
        return ""
    return (
        f"Other processes used {share * 100:.0f} % of the processors; intervals are wider than "
        "usual."
    )
