"""Machines of run records, which are never mixed in a headline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ..json_text import parse_json

UNKNOWN_MACHINE = "unknown machine"
MAX_MACHINE = 80
"""Maximum length of the name of a machine."""


def machine_name(environment: str | None, device: str | None) -> str | None:
    """Return the processor of a record with its number of CPUs, or the GPU; None if not recorded.

    >>> machine_name('{"cpu": {"model": "AMD EPYC"}, "num_cpus": 2}', "cpu")
    'AMD EPYC, 2 CPUs'
    """
    parsed: Any = parse_json(environment, {}) if environment else {}
    if not isinstance(parsed, dict):
        return None
    is_gpu = (device or "cpu").partition(":")[0] != "cpu"
    part = parsed.get("gpu" if is_gpu else "cpu")
    name = part.get("name" if is_gpu else "model") if isinstance(part, dict) else None
    if not isinstance(name, str) or not name:
        return None
    num_cpus = parsed.get("num_cpus")
    suffix = f", {num_cpus} CPUs" if not is_gpu and isinstance(num_cpus, int) else ""
    return f"{name[:MAX_MACHINE]}{suffix}"


def split_machines(arms: Mapping[str, pa.Table]) -> dict[str, dict[str, pa.Table]]:
    """Return the records of each machine by arm, the machine with the most records first.

    Records without a machine, such as those of early failures, count towards the arm's only
    machine, or towards `UNKNOWN_MACHINE` if there are several.

    >>> columns = {"environment": ['{"cpu": {"model": "x"}}', None], "device": ["cpu", "cpu"]}
    >>> {name: list(part) for name, part in split_machines({"a": pa.table(columns)}).items()}
    {'x': ['a']}
    """
    parts: dict[str, dict[str, pa.Table]] = {}
    for arm, table in arms.items():
        pairs = list(
            zip(table["environment"].to_pylist(), table["device"].to_pylist(), strict=True)
        )
        name_of = {pair: machine_name(*pair) for pair in set(pairs)}
        machines = {name for name in name_of.values() if name}
        fallback = next(iter(machines)) if len(machines) == 1 else UNKNOWN_MACHINE
        names = [name_of[pair] or fallback for pair in pairs]
        for machine in dict.fromkeys(names):
            part = table.filter(pa.array([name == machine for name in names]))
            parts.setdefault(machine, {})[arm] = part
    return dict(
        sorted(
            parts.items(),
            key=lambda item: (-sum(part.num_rows for part in item[1].values()), item[0]),
        )
    )
