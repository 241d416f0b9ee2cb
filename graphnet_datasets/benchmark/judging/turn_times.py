"""Times of arms that took turns in two processes, used to settle doubts about a baseline."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ...isolation import Outcome
from ...timing.disturbance import Interval, cover, paired_speedup
from .reported import read_counts, read_number, read_text, read_times
from .stamps import TimesError, read_calls
from .times import (
    DISTURBED,
    find_disagreement,
    overhead_ms,
    read_machine,
    take_noise,
    undisturbed_warnings,
)

AGREES_WITHIN = 1.1
"""The ratio by which the speedup of the pairs may lie outside the interval of the turns."""
MAX_BLOCKS = 10_000


def take_turn_times(
    record: dict[str, Any], messages: Mapping[str, Any], outcome: Outcome, eager: Outcome
) -> list[str]:
    """Record the times of blocks and return suspicions; the time of a block is its median call.

    Raises:
        TimesError: the worker reported no times, or the stamps do not match its calls.
    """
    clock = read_text(messages.get("clock"), 40)
    is_kernel = outcome.is_kernel_time and eager.is_kernel_time
    of_eager = eager.merged()
    blocks = [
        _blocks("candidate", messages, outcome, clock, is_kernel),
        _blocks("baseline", of_eager, eager, clock, is_kernel),
    ]
    (candidate, candidate_counts, _), (baseline, baseline_counts, _) = blocks
    if len(baseline) != len(candidate):
        raise TimesError("The two processes had different numbers of turns.", is_forged=False)
    orders = [False] * len(baseline)
    speedup = paired_speedup(baseline, candidate, orders)
    machine = read_machine(messages.get("machine"))
    record |= {
        "baseline_latency_ms": baseline,
        "candidate_latency_ms": candidate,
        "is_candidate_first": orders,
        "baseline_preemptions": baseline_counts,
        "candidate_preemptions": candidate_counts,
        "num_calm_pairs": len(baseline),
        "speedup": speedup.speedup,
        "speedup_low": speedup.low,
        "speedup_high": speedup.high,
        "timed_in": "turns",
        "baseline_cpu_ms": read_number(of_eager.get("baseline_cpu_ms")),
        "baseline_wall_ms": read_number(of_eager.get("baseline_wall_ms")),
        "clock": "kernel" if is_kernel and clock.startswith("perf_counter") else clock,
        "stopped_by": "turns",
        **(machine or {}),
    }
    take_noise(record)
    return [suspicion for _, _, suspicion in blocks if suspicion is not None]


def take_doubt(record: dict[str, Any], doubted: dict[str, Any], paired_interval: Interval) -> bool:
    """Settle a doubt; return whether to record the run in turns.

    If the speedup of the pairs is within that of the turns, the candidate did not disturb the
    baseline and the pairs are recorded. Their interval covers the interval of the pairs
    (`paired_interval`) and of the turns. It no longer covers the speedup against eager alone, which
    was timed at another moment. `doubted` is modified in this case, otherwise `record`.
    """
    paired, low, high = doubted["speedup"], record["speedup_low"], record["speedup_high"]
    is_confirmed = (
        low is not None
        and high is not None
        and low / AGREES_WITHIN <= paired <= high * AGREES_WITHIN
    )
    comparison = (
        f"in two processes that take turns the speedup is {record['speedup']:.3g}, in pairs in one "
        f"process {paired:.3g}"
    )
    if is_confirmed:
        doubted["warnings"] = undisturbed_warnings(doubted)
        keep_pairs(
            doubted, f"eager alone took another time, but {comparison}; the interval covers both"
        )
        doubted["speedup_low"], doubted["speedup_high"] = cover(paired_interval, (low, high))
        doubted["is_baseline_disturbed"] = False
        return False
    record |= {
        "is_baseline_disturbed": True,
        "paired_speedup": paired,
        "baseline_alone_ms": doubted["baseline_alone_ms"],
    }
    record["warnings"].append(f"{DISTURBED}{comparison}; the record holds the turns.")
    return True


def keep_pairs(doubted: dict[str, Any], why: str) -> None:
    """Add the warning that states why the pairs of a doubted run are recorded."""
    doubted["warnings"].append(f"baseline_doubted: the pairs stand; {why}.")


def _blocks(
    arm: str, messages: Mapping[str, Any], outcome: Outcome, clock: str, is_kernel: bool
) -> tuple[list[float], list[int], str | None]:
    """Return the median time of each block, its number of preempted calls, and a suspicion."""
    reported = read_times(messages.get(f"{arm}_turns_ms"))
    turn_lengths = messages.get(f"{arm}_turn_lengths")
    lengths = (
        read_counts(turn_lengths, len(turn_lengths)) if isinstance(turn_lengths, list) else None
    )
    if (
        reported is None
        or not lengths
        or len(lengths) > MAX_BLOCKS
        or sum(lengths) != len(reported)
    ):
        raise TimesError("The turns that the worker reported are not valid.", is_forged=False)
    if min(lengths) == 0:
        raise TimesError("The worker reported a turn without a call.", is_forged=False)
    preemptions = messages.get(f"{arm}_turn_preemptions")
    counts = read_counts(preemptions, len(reported)) or [0] * len(reported)
    calls = read_calls(outcome.stamps)
    names = [name for name, _ in calls["run"]]
    if names != [f"{arm} {place}" for place in range(len(reported))]:
        raise TimesError(
            "The kernel recorded different calls than the worker reported.", is_forged=True
        )
    first, noted = ([elapsed_ms for _, elapsed_ms in calls[phase]] for phase in ("baseline", "run"))
    overhead = overhead_ms(first, messages, noted, reported, clock)
    kernel_ms = [max(elapsed_ms - overhead, 1e-6) for elapsed_ms in noted]
    suspicion = find_disagreement(arm, reported, messages.get(f"{arm}_wall_ms"), clock, kernel_ms)
    times = kernel_ms if is_kernel and clock.startswith("perf_counter") else reported
    return (
        _of_blocks(times, lengths, statistics.median),
        _of_blocks(counts, lengths, lambda block: sum(count > 0 for count in block)),
        suspicion,
    )


def _of_blocks(values: Sequence[Any], lengths: Sequence[int], figure: Any) -> list[Any]:
    figures, place = [], 0
    for length in lengths:
        figures.append(figure(values[place : place + length]))
        place += length
    return figures
