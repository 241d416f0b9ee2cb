"""Times of a run, from the kernel's stamps and the worker's report of the same calls.

The candidate ran in the process that timed it, and could forge whatever that process reports. The
stamps around each call have the kernel's time on them, so the times of a record are theirs; the
duration of the stamping itself is known from calls of eager before the candidate was loaded.

A stamp that is missing or out of order is forgery. A duration alone is not: other processes that
take the processors lengthen any interval. So a function that compares durations returns a
`suspicion`, a sentence about them. A run with a suspicion is repeated, and only a candidate that is
suspected in each run, at least once on a calm machine, is refused.
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
"""Ratio of the worker's times to the kernel's beyond which a disagreement is forgery, and how much
the medians differ for other reasons: a call that ends on another core than that of the stamp."""
LAYOUT_WITHIN = 1.25
"""Ratio by which laying out inputs may take longer between calls of two arms than of one."""
NOISE_SHIFT = 2.0
"""Ratio of eager's times beside the candidate and alone that a busy machine does not explain."""
DISTURBED = "baseline_disturbed: "
"""What the warning of a doubted baseline begins with."""
MACHINE_FIELDS = ("load", "other_cpu_share", "steal_share")


def take_times(record: dict[str, Any], messages: Mapping[str, Any], outcome: Outcome) -> list[str]:
    """Record the times of a run, its speedup and the state of the machine; return suspicions.

    Raises:
        TimesError: the worker reported no times, or the stamps are not those of its calls.
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
            f"The worker reported {len(candidate)} pairs of calls, but the kernel saw "
            f"{len(stamped.is_candidate_first)} or others.",
            is_forged=True,
        )
    noted_ms = [*stamped.baseline_ms, *stamped.candidate_ms]
    overhead = overhead_ms(stamped.first_ms, messages, noted_ms, [*baseline, *candidate], clock)
    seen = [
        [max(elapsed_ms - overhead, 1e-6) for elapsed_ms in times]
        for times in (stamped.baseline_ms, stamped.candidate_ms)
    ]
    suspicions = [
        find_disagreement(arm, times_ms, messages.get(f"{arm}_wall_ms"), clock, stamped_ms)
        for arm, times_ms, stamped_ms in zip(ARMS, (baseline, candidate), seen, strict=True)
    ]
    if clock.startswith("perf_counter") and outcome.is_kernel_time:
        baseline, candidate = seen
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
    """Record whether the speedup is noisy, by its interval and the state of the machine."""
    settings = load_json(record["settings"] or "{}", "the settings of a run")
    precision = settings.get("timing", {}).get("precision", STATED_PRECISION)
    interval = record["speedup_low"], record["speedup_high"]
    record["is_noisy"] = is_noisy(interval, precision, _machine_of(record))


def _machine_of(record: Mapping[str, Any]) -> dict[str, float] | None:
    return read_machine({name: record[name] for name in MACHINE_FIELDS})


def was_busy(record: Mapping[str, Any]) -> bool:
    """Return whether other processes or machines took the processors while a record was timed."""
    return is_busy(_machine_of(record))


def _were_calls_interrupted(record: Mapping[str, Any]) -> bool:
    """Return whether the machine was busy, or the kernel preempted many of the timed calls.

    Threads of the worker preempt each other, so preemptions alone do not show other processes.
    """
    counts = [*(record["baseline_preemptions"] or ()), *(record["candidate_preemptions"] or ())]
    return is_busy(_machine_of(record), counts)


def take_layouts(record: dict[str, Any], outcome: Outcome) -> str | None:
    """Compare how long it took to lay out the inputs of each arm; return a suspicion or None.

    The inputs of a call are there before its clock starts, and laying them out is the same work for
    both arms, and before there is a candidate. Where it takes longer for the candidate, the
    candidate may work then. Its layouts are compared with eager's, pair by pair, and, as it could
    delay those too, with those before it was loaded, times the growth of eager's calls since, plus
    a quarter. A longer layout widens the interval of the speedup.

    A layout that is longer by more than the call itself is a suspicion, provided that it cannot be
    an interruption of some calls: the least of the candidate's layouts (the lowest tenth of more
    than ten) exceeds the upper quartile of the others by as much. Only the layouts before the
    faster half of its calls count, because work that is done ahead makes a call fast.

    Raises:
        TimesError: a call did not follow its layout.
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
    enough = took + AGREE_MS + (LAYOUT_WITHIN - 1) * usual  # no accident of tiny calls
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
    """Return the layouts before the calls that took no longer than their median.

    >>> _before_fast_calls([5.0, 6.0, 7.0], [1.0, 2.0, 3.0])
    [5.0, 6.0]
    """
    if len(layouts_ms) != len(calls_ms):
        return list(layouts_ms)
    centre = statistics.median(calls_ms)
    return [layout for layout, call in zip(layouts_ms, calls_ms, strict=True) if call <= centre]


def _gap(reference_ms: Sequence[float], own_ms: Sequence[float]) -> float:
    """Return the 0.1 quantile of `own_ms` less the 0.75 quantile of `reference_ms`.

    Of few times these are the least and the greatest.

    >>> _gap([1.0, 2.0, 3.0], [9.0, 7.0, 8.0])
    4.0
    """
    own, reference = sorted(own_ms), sorted(reference_ms)
    return own[len(own) // 10] - reference[3 * len(reference) // 4]


def take_looks(record: dict[str, Any], outcome: Outcome) -> set[str]:
    """Return the hashes of the excerpts of the candidate's outputs; doubt outputs that came late.

    Taking an excerpt is the same work for both arms. Where it takes longer for the candidate, part
    of the candidate's work may have been done then, and the interval covers that. On a busy machine
    either may be interrupted, so it has to be longer by the lower end of the interval of the pairs.

    Raises:
        TimesError: a look did not come directly after its call.
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
    """Widen the interval to calls that are `more_ms` longer, and add a warning."""
    least = record["speedup"] * took_ms / (took_ms + more_ms)
    record["speedup_low"], _ = cover((record["speedup_low"], None), (least, None))
    record["warnings"].append(
        f"{message}, so part of its work may be in there; the interval covers {least:.3g}."
    )


def _lateness(eager_ms: Sequence[float], own_ms: Sequence[float]) -> tuple[float, float]:
    """Return by how much the looks at the candidate's outputs are longer, and at least are.

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
    """Record eager's times alone, and what becomes of a doubt about those beside the candidate.

    Where the two differ on a busy machine the interval of the speedup covers both; where they
    differ on a calm one, or by more than noise explains, `is_baseline_disturbed` is set too, and
    both arms are to be timed again in turns. The speedup stays that of the pairs. `first_ms` are
    eager's times in the process of the pairs, before there was a candidate: where those are like
    the ones beside it, the machine is another one since, and not by the candidate's doing.
    `is_known_busy` says that the machine was found to be busy in another way.
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
    """Tell whether all of eager's calls took as much longer already before the candidate was there.

    All of them: what slows some of the calls is not what the machine does to every one. The few
    first calls show their median alone.
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
    """Return the times of calls that were not preempted, or all where those are too few."""
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
    """Return how long two stamps take, by the calls of eager that came before the candidate.

    The timed calls, `noted_ms` by the kernel and `reported_ms` by the worker, count where they show
    less: if the machine was busy only before, for instance with the other process of two that take
    turns, too much would be subtracted.

    Raises:
        TimesError: the worker reports others than the kernel saw.
    """
    first = read_times(messages.get("baseline_first_ms"))
    if first is None or len(first) != len(first_ms):
        raise TimesError(
            "The kernel did not see the calls of eager before the candidate was loaded.",
            is_forged=True,
        )
    walls = read_times(messages.get("baseline_first_wall_ms")) or first
    overhead = _stamping_ms(first_ms, walls)
    if not clock.startswith("perf_counter"):
        return overhead
    return min(overhead, _stamping_ms(noted_ms, reported_ms))


def _stamping_ms(noted_ms: Sequence[float], reported_ms: Sequence[float]) -> float:
    """Return what two stamps take: the lower quartile, as being interrupted only adds to it.

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
    """Return a suspicion if the worker's times of an arm are not those of the kernel, else None.

    `times_ms` and, for the clock of a device, `wall_ms` are the worker's; `stamped_ms` are the
    kernel's.
    """
    reported = statistics.median(times_ms)
    if not clock.startswith("perf_counter"):  # of a device: the wall clock of the same calls
        reported = read_number(wall_ms) or 0.0
    stamped = statistics.median(stamped_ms)
    low, high = sorted((reported, stamped))
    apart = high - low
    if clock.startswith("perf_counter") and len(times_ms) == len(stamped_ms):
        # Of few calls, one that is interrupted between a clock and its stamp moves a median.
        differences = (abs(own - noted) for own, noted in zip(times_ms, stamped_ms, strict=True))
        apart = min(apart, statistics.median(differences))
    if apart <= (AGREE_WITHIN - 1) * low + AGREE_MS:
        return None
    return (
        f"A call of the {arm} took {stamped:.3g} ms by the clock of the kernel, but "
        f"{reported:.3g} ms by the worker's report."
    )
