"""Times of a run, from the kernel's stamps and the worker's report of the same calls.

The candidate ran in the process that timed it, and could forge any report of that process. The
stamps around each call carry the kernel's time, so a record uses their times. The duration of
stamping itself is known from calls of eager before the candidate was loaded.

A missing or misplaced stamp proves forgery. A duration alone does not, because other processes can
lengthen any interval. Functions that compare durations therefore return a `suspicion`, a sentence
about them. A run with a suspicion is repeated. A candidate is only rejected if it is suspected in
every run, at least once on a quiet machine.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ...decoding import load_json
from ...isolation import Outcome
from ...timing.calls import ARMS
from ...timing.disturbance import (
    ALLOWED_SHIFT,
    MIN_CALM_PAIRS,
    STATED_PRECISION,
    cover,
    find_shift,
    is_busy,
    is_noisy,
    paired_speedup,
)
from ...timing.intervals import centre_and_interval, shift_interval
from .reported import read_counts, read_number, read_text, read_times
from .stamps import TimesError, read_calls, read_layouts, read_looks, read_stamps

AGREE_WITHIN, AGREE_MS = 1.05, 0.05
"""Limits beyond which the worker's times disagree with the kernel's: a ratio, and a difference of
the medians that other causes explain, such as a call that ends on another core than its stamp."""
LAYOUT_WITHIN = 1.25
"""The ratio by which preparing inputs may take longer between calls of two arms than of one."""
NOISE_SHIFT = 2.0
"""The ratio of eager's times next to the candidate and alone that a busy machine cannot explain."""
DISTURBED = "baseline_disturbed: "
"""The prefix of the warning about a disturbed baseline."""
MACHINE_FIELDS = ("load", "other_cpu_share", "steal_share")


def take_times(record: dict[str, Any], messages: Mapping[str, Any], outcome: Outcome) -> list[str]:
    """Record the times of a run, its speedup and the state of the machine; return suspicions.

    Raises:
        TimesError: the worker reported no times, or the stamps do not match its calls.
    """
    reported = [read_times(messages.get(f"{arm}_latency_ms")) for arm in ARMS]
    baseline, candidate = reported
    orders = messages.get("is_candidate_first")
    if (
        baseline is None
        or candidate is None
        or len(baseline) != len(candidate)
        or not isinstance(orders, list)
        or [type(order) for order in orders] != [bool] * len(baseline)
    ):
        raise TimesError("The times that the worker reported are not valid.", is_forged=False)
    clock = read_text(messages.get("clock"), 40)
    stamped = read_stamps(outcome.stamps)
    if stamped.is_candidate_first != orders or len(stamped.candidate_ms) != len(candidate):
        raise TimesError(
            f"The worker reported {len(candidate)} pairs of calls, but the kernel recorded "
            f"{len(stamped.is_candidate_first)} pairs or other calls.",
            is_forged=True,
        )
    noted_ms = [*stamped.baseline_ms, *stamped.candidate_ms]
    overhead = overhead_ms(stamped.first_ms, messages, noted_ms, [*baseline, *candidate], clock)
    kernel_ms = [
        [max(elapsed_ms - overhead, 1e-6) for elapsed_ms in times]
        for times in (stamped.baseline_ms, stamped.candidate_ms)
    ]
    suspicions = [
        find_disagreement(arm, times_ms, messages.get(f"{arm}_wall_ms"), clock, stamped_ms)
        for arm, times_ms, stamped_ms in zip(ARMS, (baseline, candidate), kernel_ms, strict=True)
    ]
    if clock.startswith("perf_counter") and outcome.is_kernel_time:
        baseline, candidate = kernel_ms
        clock = "kernel"
    counts = [
        read_counts(messages.get(f"{arm}_preemptions"), len(baseline)) or [0] * len(baseline)
        for arm in ARMS
    ]
    speedup = paired_speedup(baseline, candidate, orders, *counts)
    machine = read_machine(messages.get("machine"))
    record |= {
        "baseline_latency_ms": baseline,
        "candidate_latency_ms": candidate,
        "is_candidate_first": orders,
        "baseline_preemptions": counts[0],
        "candidate_preemptions": counts[1],
        "num_calm_pairs": speedup.num_calm,
        "speedup": speedup.speedup,
        "speedup_low": speedup.low,
        "speedup_high": speedup.high,
        "timed_in": "pairs",
        "clock": clock,
        "stopped_by": read_text(messages.get("stopped_by"), 40),
        **(machine or {}),
    }
    take_noise(record)
    if speedup.is_uneven:
        record["warnings"].append(
            "unevenly_preempted: the kernel interrupted one arm more often than its share of the "
            "time explains, so the interval covers that of all pairs too."
        )
    return [suspicion for suspicion in suspicions if suspicion is not None]


def take_noise(record: dict[str, Any]) -> None:
    """Record whether the speedup is noisy, based on its interval and the state of the machine."""
    settings = load_json(record["settings"] or "{}", "the settings of a run")
    precision = settings.get("timing", {}).get("precision", STATED_PRECISION)
    interval = record["speedup_low"], record["speedup_high"]
    record["is_noisy"] = is_noisy(interval, precision, _machine_of(record))


def _machine_of(record: Mapping[str, Any]) -> dict[str, float] | None:
    return read_machine({name: record[name] for name in MACHINE_FIELDS})


def was_busy(record: Mapping[str, Any]) -> bool:
    """Return whether other processes or machines used the processors while a record was timed."""
    return is_busy(_machine_of(record))


def _were_calls_interrupted(record: Mapping[str, Any]) -> bool:
    """Return whether the machine was busy or the kernel preempted many of the timed calls.

    Threads of the worker preempt each other, so preemptions alone do not indicate other processes.
    """
    counts = [*(record["baseline_preemptions"] or ()), *(record["candidate_preemptions"] or ())]
    return is_busy(_machine_of(record), counts)


def undisturbed_warnings(record: Mapping[str, Any]) -> list[str]:
    """Return the warnings of a record except those about a disturbed baseline."""
    return [warning for warning in record["warnings"] if not warning.startswith(DISTURBED)]


def take_layouts(record: dict[str, Any], outcome: Outcome) -> str | None:
    """Compare how long preparing the inputs took for each arm; return a suspicion or None.

    The inputs of a call exist before its clock starts. Preparing them is the same work for both
    arms and before the candidate is loaded. If it takes longer for the candidate, the candidate may
    be working then. The candidate's preparation times are compared with eager's, pair by pair.
    Since a candidate could delay eager's as well, they are also compared with the times before it
    was loaded, scaled by the growth of eager's calls since then plus a quarter. A longer
    preparation widens the interval of the speedup.

    A preparation that is longer by more than the call itself is a suspicion, unless interruptions
    of some calls explain it. The smallest of the candidate's preparation times (the lowest tenth of
    more than ten) must exceed the upper quartile of the others by as much. Only the preparations
    before the faster half of its calls count, because work done ahead makes a call fast.

    Raises:
        TimesError: a call did not directly follow its preparation.
    """
    layouts = read_layouts(outcome.stamps)
    own = layouts["candidate"]
    if not own:
        return None
    took = statistics.median(record["candidate_latency_ms"])
    comparisons = []
    if layouts["baseline"]:
        comparisons.append((*_lateness(layouts["baseline"], own), layouts["baseline"]))
    if layouts["first"]:
        first_ms = [elapsed_ms for _, elapsed_ms in read_calls(outcome.stamps)["baseline"]]
        slower = statistics.median(record["baseline_latency_ms"]) / statistics.median(first_ms)
        before = [elapsed_ms * max(1.0, slower) * LAYOUT_WITHIN for elapsed_ms in layouts["first"]]
        comparisons.append((*_lateness([statistics.median(before)] * len(own), own), before))
    if not comparisons:
        return None
    early, least_early, reference = max(comparisons, key=lambda comparison: comparison[1])
    if least_early <= (AGREE_WITHIN - 1) * took + AGREE_MS:
        return None
    usual = statistics.median(layouts["first"] or layouts["baseline"])
    enough = took + AGREE_MS + (LAYOUT_WITHIN - 1) * usual  # excludes chance in tiny calls
    apart = _gap(reference, _before_fast_calls(own, record["candidate_latency_ms"]))
    _doubt(
        record,
        f"early_work: laying out inputs for the candidate took {early:.3g} ms longer than "
        "laying out eager's",
        took,
        early,
    )
    if min(least_early, apart) <= enough:
        return None
    return (
        f"Laying out inputs for the candidate took {early:.3g} ms longer than for eager, and its "
        f"calls {took:.3g} ms: it works before the clock is started."
    )


def _before_fast_calls(layouts_ms: Sequence[float], calls_ms: Sequence[float]) -> list[float]:
    """Return the preparation times of calls that took at most the median time.

    >>> _before_fast_calls([5.0, 6.0, 7.0], [1.0, 2.0, 3.0])
    [5.0, 6.0]
    """
    if len(layouts_ms) != len(calls_ms):
        return list(layouts_ms)
    centre = statistics.median(calls_ms)
    return [layout for layout, call in zip(layouts_ms, calls_ms, strict=True) if call <= centre]


def _gap(reference_ms: Sequence[float], own_ms: Sequence[float]) -> float:
    """Return the 0.1 quantile of `own_ms` minus the 0.75 quantile of `reference_ms`.

    For few times these are the minimum and the maximum.

    >>> _gap([1.0, 2.0, 3.0], [9.0, 7.0, 8.0])
    4.0
    """
    own, reference = sorted(own_ms), sorted(reference_ms)
    return own[len(own) // 10] - reference[3 * len(reference) // 4]


def take_looks(record: dict[str, Any], outcome: Outcome) -> set[str]:
    """Return the hashes of the candidate's output excerpts; widen the interval for late outputs.

    Taking an excerpt is the same work for both arms. If it takes longer for the candidate, part of
    the candidate's work may have happened then, and the interval is widened to cover it. On a busy
    machine either may be interrupted, so the lower end of the interval of the pairs decides.

    Raises:
        TimesError: an inspection did not directly follow its call.
    """
    looks = read_looks(outcome.stamps)
    if looks["baseline"] and looks["candidate"]:
        late, least_late = _lateness(*([look.after_ms for look in looks[arm]] for arm in ARMS))
        took = statistics.median(record["candidate_latency_ms"])
        if least_late > (AGREE_WITHIN - 1) * took + AGREE_MS:
            message = (
                f"late_outputs: reading the candidate's outputs took {late:.3g} ms longer than "
                "reading eager's"
            )
            _doubt(record, message, took, late)
    return {look.digest for look in looks["candidate"]}


def _doubt(record: dict[str, Any], message: str, took_ms: float, more_ms: float) -> None:
    """Widen the interval to include calls that are `more_ms` longer, and add a warning."""
    least = record["speedup"] * took_ms / (took_ms + more_ms)
    record["speedup_low"], _ = cover((record["speedup_low"], None), (least, None))
    record["warnings"].append(
        f"{message}, so part of its work may be in there; the interval covers {least:.3g}."
    )


def _lateness(eager_ms: Sequence[float], own_ms: Sequence[float]) -> tuple[float, float]:
    """Return how much longer the candidate's inspections take, and the lower end of the interval.

    >>> _lateness([1.0] * 19 + [40.0], [3.0] * 20)
    (2.0, 2.0)
    >>> centre, least = _lateness([1.0, 9.0] * 5, [9.0, 1.0] * 5)
    >>> least < 0
    True
    """
    if len(eager_ms) != len(own_ms):
        late = statistics.median(own_ms) - statistics.median(eager_ms)
        return late, late
    differences = [own - eager for eager, own in zip(eager_ms, own_ms, strict=True)]
    centre, low, _ = centre_and_interval(differences)
    return centre, low


def take_alone(
    record: dict[str, Any],
    alone_ms: Any,
    alone_preemptions: Any,
    alone_machine: Any,
    first_ms: Any = None,
    *,
    is_known_busy: bool = False,
) -> None:
    """Record eager's times alone and compare them with its times next to the candidate.

    If the two differ on a busy machine, the interval of the speedup covers both. If they differ on
    a quiet machine, or by more than noise explains, `is_baseline_disturbed` is set as well and both
    arms must be timed again in turns. The speedup stays that of the pairs. `first_ms` are eager's
    times in the process of the pairs before the candidate was loaded. If they match the times next
    to the candidate, the machine has changed since, and the candidate is not the cause.
    `is_known_busy` states that the machine was busy according to another check.
    """
    alone = read_times(alone_ms)
    record["baseline_alone_ms"] = alone
    if alone is None:
        return
    counts = read_counts(alone_preemptions, len(alone)) or [0] * len(alone)
    clean = _calm(alone, counts)
    paired = _calm(record["baseline_latency_ms"], record["baseline_preemptions"])
    shift = find_shift(paired, clean)
    record["is_baseline_disturbed"] = False
    if shift == 1:
        return
    takes = f"eager beside the candidate takes {shift:.3g} of its time alone"
    if _has_drifted(read_times(first_ms), paired, clean):
        record["warnings"].append(
            f"drifted: {takes}, and took as long before there was a candidate: the machine changed."
        )
        return
    is_machine_busy = (
        is_known_busy
        or _were_calls_interrupted(record)
        or is_busy(read_machine(alone_machine), counts)
    )
    candidate = _calm(record["candidate_latency_ms"], record["candidate_preemptions"])
    against_alone = shift_interval(clean, candidate)
    record["speedup_low"], record["speedup_high"] = cover(
        cover((record["speedup_low"], record["speedup_high"]), against_alone[1:]),
        (against_alone[0], against_alone[0]),
    )
    message = (
        f"{takes}; the interval covers the speedup against either, {record['speedup']:.3g} and "
        f"{against_alone[0]:.3g}."
    )
    if is_machine_busy and max(shift, 1 / shift) < NOISE_SHIFT:
        record["warnings"].append(f"noisy: on a busy machine {message}")
    else:
        record["is_baseline_disturbed"] = True
        record["warnings"].append(f"{DISTURBED}{message}")


def _has_drifted(
    first_ms: Sequence[float] | None, paired_ms: Sequence[float], alone_ms: Sequence[float]
) -> bool:
    """Return whether all of eager's calls were already slower before the candidate was loaded.

    All of them must be: a change of the machine affects every call, unlike other causes. The few
    first calls only provide a median.
    """
    if not first_ms:
        return False
    centre = statistics.median(paired_ms)
    since = centre / statistics.median(first_ms)
    drift = centre / statistics.median(alone_ms)
    is_as_before = 1 / ALLOWED_SHIFT <= since <= ALLOWED_SHIFT
    return (
        is_as_before and find_shift(paired_ms, [elapsed_ms * drift for elapsed_ms in alone_ms]) == 1
    )


def _calm(times_ms: Sequence[float], preemptions: Sequence[int]) -> list[float]:
    """Return the times of calls without preemptions, or all times if there are too few of them."""
    calm = [
        elapsed_ms for elapsed_ms, count in zip(times_ms, preemptions, strict=True) if not count
    ]
    return calm if len(calm) >= MIN_CALM_PAIRS else list(times_ms)


def read_machine(message: Any) -> dict[str, float] | None:
    """Return the state of a machine with the keys `MACHINE_FIELDS`, or None."""
    if not isinstance(message, dict):
        return None
    numbers = [read_number(message.get(name)) for name in MACHINE_FIELDS]
    figures = [float(number) for number in numbers if number is not None]
    return dict(zip(MACHINE_FIELDS, figures, strict=True)) if len(figures) == len(numbers) else None


def overhead_ms(
    first_ms: Sequence[float],
    messages: Mapping[str, Any],
    noted_ms: Sequence[float],
    reported_ms: Sequence[float],
    clock: str,
) -> float:
    """Return the duration of two stamps, from the calls of eager before the candidate was loaded.

    The timed calls, `noted_ms` by the kernel and `reported_ms` by the worker, are used if they show
    a shorter duration. The machine may have been busy only before them, for instance with the other
    process of two that take turns, and too much would be subtracted.

    Raises:
        TimesError: the worker's calls differ from those that the kernel saw.
    """
    first = read_times(messages.get("baseline_first_ms"))
    if first is None or len(first) != len(first_ms):
        raise TimesError(
            "The kernel did not record the calls of eager before the candidate was loaded.",
            is_forged=True,
        )
    walls = read_times(messages.get("baseline_first_wall_ms")) or first
    overhead = _stamping_ms(first_ms, walls)
    if not clock.startswith("perf_counter"):
        return overhead
    return min(overhead, _stamping_ms(noted_ms, reported_ms))


def _stamping_ms(noted_ms: Sequence[float], reported_ms: Sequence[float]) -> float:
    """Return the duration of two stamps: the lower quartile, since interruptions only add to it.

    >>> round(_stamping_ms([1.003, 1.004, 1.5, 1.9], [1.0] * 4), 3)
    0.004
    """
    differences = sorted(
        noted - reported for noted, reported in zip(noted_ms, reported_ms, strict=True)
    )
    return max(differences[len(differences) // 4], 0.0)


def find_disagreement(
    arm: str, times_ms: Sequence[float], wall_ms: Any, clock: str, stamped_ms: Sequence[float]
) -> str | None:
    """Return a suspicion if the worker's times of an arm disagree with the kernel's, else None.

    `times_ms` and, for a device clock, `wall_ms` are the worker's times; `stamped_ms` are the
    kernel's.
    """
    reported = statistics.median(times_ms)
    if not clock.startswith("perf_counter"):  # device clock: use the wall clock instead
        reported = read_number(wall_ms) or 0.0
    stamped = statistics.median(stamped_ms)
    low, high = sorted((reported, stamped))
    apart = high - low
    if clock.startswith("perf_counter") and len(times_ms) == len(stamped_ms):
        # With few calls, an interruption between a clock and its stamp moves the median.
        differences = (abs(own - noted) for own, noted in zip(times_ms, stamped_ms, strict=True))
        apart = min(apart, statistics.median(differences))
    if apart <= (AGREE_WITHIN - 1) * low + AGREE_MS:
        return None
    return (
        f"A call of the {arm} took {stamped:.3g} ms by the clock of the kernel, but "
        f"{reported:.3g} ms by the worker's report."
    )
