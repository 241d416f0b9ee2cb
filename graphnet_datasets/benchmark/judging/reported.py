"""Validated values from a worker's messages, which are untrusted: the process ran a candidate."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ...paths import without_places
from ...schema.runs import CARRIED, COLD, DEVICE_STATE_FIELDS
from ...timing.pairs import break_even_calls
from ..child.device_state import is_throttled

MAX_TIMES = 1_000_000
LAUNCH_BOUND_SHARE = 0.5
"""An arm whose kernels take a smaller fraction of the wall time is limited by kernel launches."""
CLOCKS_AGREE_WITHIN = 1.25
"""The ratio of two clocks above which a warning is given, beyond `CLOCKS_AGREE_MS`."""
CLOCKS_AGREE_MS = 0.1
_MAX_REASONS = 20
_MAX_CHANGES = 100


def read_times(value: Any) -> list[float] | None:
    """Return times in milliseconds, or None if the worker sent anything else.

    >>> read_times([1, 2.5]), read_times([0.0]), read_times("fast")
    ([1.0, 2.5], None, None)
    """
    if not isinstance(value, list) or not 0 < len(value) <= MAX_TIMES:
        return None
    if not all(type(number) in (int, float) and 0 < number < math.inf for number in value):
        return None
    return [float(number) for number in value]


def read_counts(value: Any, length: int) -> list[int] | None:
    """Return `length` integers, or None if the worker sent anything else.

    >>> read_counts([0, 3], 2), read_counts([0, -1], 2), read_counts([0], 2)
    ([0, 3], None, None)
    """
    if not isinstance(value, list) or len(value) != length:
        return None
    return value if all(type(number) is int and 0 <= number < 2**31 for number in value) else None


def read_number(value: Any) -> float | None:
    """Return a finite, non-negative number, or None.

    >>> read_number(3), read_number(-1), read_number("3")
    (3, None, None)
    """
    is_number = type(value) in (int, float) and math.isfinite(value) and 0 <= value < 2**62
    return value if is_number else None


def read_text(value: Any, length: int) -> str:
    """Return the first `length` characters of a value; lone surrogates are replaced."""
    return str(value).encode(errors="replace").decode()[:length]


def read_message(value: Any, length: int) -> str:
    """Return the first characters of a message, without the directories of installed packages.

    Records are published, and installation paths are private.

    >>> read_message("/home/me/.venv/lib/python3.11/site-packages/torch/nn/linear.py(1): no", 99)
    'torch/nn/linear.py(1): no'
    """
    return without_places(read_text(value, length))


def read_changes(messages: Mapping[str, Any]) -> list[str]:
    """Return a line for each part of the process state that a candidate changed.

    >>> read_changes({"state of calls": [["torch.num_threads", "8", "1"]]})
    ['torch.num_threads: 8 -> 1 (in a call)']
    """
    lines = []
    for moment, words in (("compile", "while compiling"), ("calls", "in a call")):
        changes = messages.get(f"state of {moment}")
        for change in changes[:_MAX_CHANGES] if isinstance(changes, list) else ():
            if isinstance(change, list) and len(change) == 3:
                name, before, after = (read_message(part, 200) for part in change)
                values = f": {before} -> {after}" if before or after else ""
                lines.append(f"{name}{values} ({words})")
    return lines


def read_device_state(report: Any) -> dict[str, Any] | None:
    """Return a GPU state with the fields of `DEVICE_STATE_FIELDS`, or None."""
    if not isinstance(report, dict):
        return None
    state: dict[str, Any] = {}
    for field in DEVICE_STATE_FIELDS:
        value = report.get(field.name)
        if field.name == "throttle_reasons":
            if isinstance(value, list):
                value = [read_text(reason, 40) for reason in value[:_MAX_REASONS]]
            state[field.name] = value if isinstance(value, list) else None
            continue
        value = read_number(value)
        state[field.name] = value if value is None or field.name == "power_w" else int(value)
    return state


def take_figures(record: dict[str, Any], messages: Mapping[str, Any]) -> None:
    """Record values derived from a run's times: break-even, launch bound, clocks, throttling."""
    if record["compile_time_s"] is not None:
        record["break_even_calls"] = break_even_calls(
            record["compile_time_s"], record["baseline_latency_ms"], record["candidate_latency_ms"]
        )
    if messages.get("launch_mode") in ("stream", "cuda_graph"):
        record["launch_mode"] = messages["launch_mode"]
        for arm in ("baseline", "candidate"):
            _compare_clocks(record, arm)
    for name in ("device_before", "device_after"):
        record[name] = read_device_state(messages.get(name))
        if is_throttled(record[name]):
            reasons = ", ".join(record[name]["throttle_reasons"])
            moment = name.removeprefix("device_")
            record["warnings"].append(f"throttled {moment} the timed calls: {reasons}")


def _compare_clocks(record: dict[str, Any], arm: str) -> None:
    """Compare the three clocks of a GPU with each other."""
    events = statistics.median(record[f"{arm}_latency_ms"])
    wall, kernels = record[f"{arm}_wall_ms"], record[f"{arm}_kernel_ms"]
    if wall and kernels is not None:
        record[f"is_{arm}_launch_bound"] = kernels < LAUNCH_BOUND_SHARE * wall
    parts = [f"events {events:.3g} ms"]
    is_odd = False
    if wall:
        parts.append(f"wall {wall:.3g} ms")
        is_odd = _differ(wall, events)
    if kernels is not None:
        parts.append(f"kernels {kernels:.3g} ms")
        # Kernels on several streams overlap, so their sum may exceed the event time slightly; idle
        # gaps reduce it.
        is_odd = is_odd or (kernels > events and _differ(kernels, events))
    if is_odd:
        record["warnings"].append(f"clocks_disagree on the {arm}: {', '.join(parts)}")


def _differ(left: float, right: float) -> bool:
    low, high = sorted((left, right))
    return high > CLOCKS_AGREE_WITHIN * low and high - low > CLOCKS_AGREE_MS


def take_compile_cache(record: dict[str, Any], messages: Mapping[str, Any]) -> None:
    """Record whether the compiler used carried caches, and discard a compile time they shorten.

    >>> record = {"compile_cache": "carried", "compile_time_s": 0.5}
    >>> take_compile_cache(record, {"compile_cache": "carried"})
    >>> record
    {'compile_cache': 'carried', 'compile_time_s': None}
    """
    if record["compile_cache"] == CARRIED and messages.get("compile_cache") == COLD:
        record["compile_cache"] = COLD  # the compiler takes nothing from a cache
    if record["compile_cache"] not in (None, COLD):
        record["compile_time_s"] = None


def take_off_pauses(
    record: dict[str, Any], messages: Mapping[str, Any], pauses: Sequence[tuple[float, float]]
) -> None:
    """Subtract the pauses of the worker from its loading and compile times.

    >>> record = {"compile_time_s": 9.5}
    >>> pauses = [(8.0, 11.0), (19.5, 19.75), (30.0, 31.0)]
    >>> take_off_pauses(record, {"compile_span_s": [10.0, 20.0]}, pauses)
    >>> record
    {'compile_time_s': 8.25}
    """
    for name, key in (("load_time_s", "load_span_s"), ("compile_time_s", "compile_span_s")):
        span = messages.get(key)
        if pauses and record.get(name) is not None and isinstance(span, list) and len(span) == 2:
            began_s, ended_s = (read_number(bound) or 0.0 for bound in span)
            within = (min(end, ended_s) - max(begin, began_s) for begin, end in pauses)
            record[name] = max(
                0.0, record[name] - sum(seconds for seconds in within if seconds > 0)
            )
