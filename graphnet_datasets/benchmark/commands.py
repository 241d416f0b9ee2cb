"""Commands that repeat the run of a record, or find the operator it fails on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from ..json_text import parse_json
from ..terminal import printable_line

_DEFAULTS = {
    "weights": ("--weights", "parameters"),
    "input_mode": ("--input-mode", "replay"),
    "cache_mode": ("--cache", "warm"),
    "launch_mode": ("--launch", "stream"),
    "seed": ("--seed", 0),
}


def command_of(record: Mapping[str, Any]) -> str:
    """Return a line for a shell with every string of the record quoted as a word.

    Control characters and line ends are escaped, so that people copy the text that they see.

    What the command line cannot say of options (those that are objects, and the name of a compiler
    that is not registered here) is said as it stands in the record.

    >>> command_of({"sample_id": "a b", "compiler": "inductor", "compiler_options": '{"mode": "x"}',
    ...     "dataset": "graphnet", "device": "cpu", "num_threads": 2, "seed": 0})
    "graphnet run 'a b' --compiler inductor --option mode=x --threads 2 --out again"
    """
    sample_id = str(record["sample_id"])
    words = ["graphnet", "run"]
    if not sample_id.startswith("-"):
        words.append(sample_id)
    words += _words_of_arm(record)
    for column, (flag, default) in _DEFAULTS.items():
        value = record.get(column)
        if value is not None and value != default:
            words += [flag, str(value)]
    if record.get("num_threads"):
        words += ["--threads", str(record["num_threads"])]
    words += ["--out", "again"]
    if sample_id.startswith("-"):
        words += ["--", sample_id]
    return printable_line(shlex.join(words))


def bisect_command_of(record: Mapping[str, Any]) -> str:
    """Return the command that finds the operator on which the run of a record fails.

    >>> bisect_command_of({"sample_id": "a b", "compiler": "inductor", "dataset": "graphnet"})
    "graphnet bisect 'a b' --compiler inductor"
    """
    sample_id = str(record["sample_id"])
    words = ["graphnet", "bisect", *_words_of_arm(record)]
    if record.get("seed"):
        words += ["--seed", str(record["seed"])]
    words[2:2] = [] if sample_id.startswith("-") else [sample_id]
    words += ["--", sample_id] if sample_id.startswith("-") else []
    return printable_line(shlex.join(words))


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


def _options(text: Any) -> dict[str, Any]:
    options = parse_json(text or "{}")
    return options if isinstance(options, dict) else {}
