"""Shell commands that repeat the run of a record, or find the operator on which it fails."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from ..json_text import parse_json
from ..storage.selection import LIST, is_path
from ..terminal import printable_line

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,99}", re.ASCII)
"""Names of registered compilers and options, and values that are neither paths nor programs."""

_DEFAULTS = {
    "weights": ("--weights", "parameters"),
    "input_mode": ("--input-mode", "replay"),
    "cache_mode": ("--cache", "warm"),
    "launch_mode": ("--launch", "stream"),
    "seed": ("--seed", 0),
}


def command_of(record: Mapping[str, Any]) -> str:
    """Return a shell command line with every string of the record quoted.

    Control characters and line ends are escaped, so that the copied text is the text on screen. If
    the record's compiler, sample or options could import code or read files, the line is a comment
    that states the reason (see `check_names`).

    >>> command_of({"sample_id": "a b", "compiler": "inductor", "compiler_options": '{"mode": "x"}',
    ...     "dataset": "graphnet", "device": "cpu", "num_threads": 2, "seed": 0})
    "graphnet run 'a b' --compiler inductor --option mode=x --threads 2 --out again"
    >>> command_of({"sample_id": "a", "compiler": "evil.py:f"})
    '# No command: the record names the compiler `evil.py:f`, which could run code of its author.'
    """
    reason = _refusal(record)
    if reason:
        return printable_line(f"# No command: {reason}")
    words = _words_of_arm(record)
    for column, (flag, default) in _DEFAULTS.items():
        value = record.get(column)
        if value is not None and value != default:
            words += [flag, str(value)]
    if record.get("num_threads"):
        words += ["--threads", str(record["num_threads"])]
    return _line("run", record, [*words, "--out", "again"])


def bisect_command_of(record: Mapping[str, Any]) -> str:
    """Return the command that finds the operator on which the run of a record fails.

    >>> bisect_command_of({"sample_id": "a b", "compiler": "inductor", "dataset": "graphnet"})
    "graphnet bisect 'a b' --compiler inductor"
    """
    words = _words_of_arm(record)
    if record.get("seed"):
        words += ["--seed", str(record["seed"])]
    return _line("bisect", record, words)


def _line(command: str, record: Mapping[str, Any], words: list[str]) -> str:
    """Return a command line; a sample id that starts with a hyphen comes last, after `--`."""
    sample_id = str(record["sample_id"])
    words = [*words, "--", sample_id] if sample_id.startswith("-") else [sample_id, *words]
    return printable_line(shlex.join(["graphnet", command, *words]))


def _words_of_arm(record: Mapping[str, Any]) -> list[str]:
    words = ["--compiler", str(record.get("compiler") or "eager")]
    for name, value in _options(record.get("compiler_options")).items():
        if value is None or value in ({}, []):
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["--option", f"{name}={text}"]
    if record.get("dataset") not in (None, "", "graphnet"):
        words += ["--dataset", str(record["dataset"])]
    if record.get("device") not in (None, "", "cpu"):
        words += ["--device", str(record["device"])]
    return words


def _refusal(record: Mapping[str, Any]) -> str:
    """Return why a record gets no command, or ""."""
    compiler = str(record.get("compiler") or "eager")
    if not _NAME.fullmatch(compiler):
        return f"the record names the compiler `{compiler}`, which could run code of its author."
    sample_id = str(record["sample_id"])
    if is_path(sample_id) or sample_id.startswith(LIST):
        return f"the record names the sample `{sample_id}`, which is a path."
    for name, value in _options(record.get("compiler_options")).items():
        is_plain = not isinstance(value, str) or _NAME.fullmatch(value)
        if not (_NAME.fullmatch(name) and is_plain) or (isinstance(value, dict | list) and value):
            return f"the record sets the option `{name}`, which could name a program or a file."
    return ""


def _options(text: Any) -> dict[str, Any]:
    options = parse_json(text or "{}")
    return options if isinstance(options, dict) else {}
