"""Sentences and tables about summaries of arms and about single run records."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..schema import Status
from ..terminal import counted, printable_line
from .intervals import MIN_FAMILIES, Mean
from .run_sets import as_table
from .summary import Summary, can_be_compared, relative_speedup
from .text import text_table
from .undecidable import NONDETERMINISTIC, undecidable_reason, vacuous_reason
from .variants import TOLERANCE, find_variant
from .verdicts import OUTCOME_OF, Outcome, verdicts
from .warnings import IMPOSSIBLE, first_of

MAX_MESSAGE = 120
"""Maximum length of an error message in a line about a run."""
MAX_NAME = 28
"""Maximum length of an arm's name in a table; longer names are explained below the table."""
CONTROLS = ("eager", "paddle-eager")
MAX_FAMILIES_NEEDED = 10_000
MIN_HEADLINE_FAMILIES = 100
"""Minimum number of families of an arm in a headline. Fewer say more about the models than about
the compiler."""
MAX_IN_HEADLINE = 5
MAX_PAIRS = 6
"""Maximum number of pairs of arms named in a sentence."""

_DIRECTORY = re.compile(r"^/\S*/(?=[^/\s]+\.py:)")

LEGEND = (
    "right, wrong: whether outputs agree with eager at t = -3, where zeros would not. t sets the "
    "tolerance: at t = -3 a float32 output may differ by 0.001 plus 0.03 % of its value.",
    "undecidable: the outputs allow no verdict, for example because zeros agree just as well. "
    "vacuous (`--full`): at this t zeros would pass for the sample.",
    "S(t) counts a wrong or failed graph as {b:g}x; ES(t) forgives errors of accuracy from t = 1, "
    "failures later. not counted: eager or the harness failed, or the time is impossible, so that "
    "the run says nothing about the compiler.",
    'All t, and the graphs that are not counted: `--full`. More: docs/scores.md, "How to read a '
    'score".',
)


def short_compiler(name: str) -> str:
    """Return the name of a compiler without the directory of its file.

    >>> short_compiler("/home/me/mine.py:compile"), short_compiler("inductor")
    ('mine.py:compile', 'inductor')
    """
    return _DIRECTORY.sub("", name)


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return a short label for each arm; long names that share a compiler are numbered.

    >>> list(short_names(["tvm", "inductor (freezing=true, mode=default)"]).values())
    ['tvm', 'inductor [1]']
    """
    labels: dict[str, str] = {}
    shortened = [short_compiler(name) for name in names]
    for full_name, short_name in zip(names, shortened, strict=True):
        name = short_name if shortened.count(short_name) == 1 else full_name
        compiler, bracket, _ = name.partition(" (")
        is_long = bool(bracket) and len(name) > MAX_NAME
        number = 1 + sum(label.startswith(f"{compiler} [") for label in labels.values())
        labels[full_name] = f"{compiler} [{number}]" if is_long else name
    return labels


def with_short_names(summaries: Sequence[Summary]) -> tuple[list[Summary], list[str]]:
    """Shorten the names of the summaries, and return a line for each shortened name."""
    labels = short_names([summary.name for summary in summaries])
    lines = [f"  {label}: {name}" for name, label in labels.items() if label != name]
    renamed = [dataclasses.replace(summary, name=labels[summary.name]) for summary in summaries]
    return renamed, [printable_line(line) for line in lines]


def arms_table(summaries: Sequence[Summary]) -> str:
    """Return a table with a row per arm."""
    return text_table(*arms_cells(summaries), is_first_left=True)


def arms_cells(summaries: Sequence[Summary]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table with a row per arm."""
    has_others = any(summary.counts.get(Outcome.NOT_COUNTED) for summary in summaries)
    outcomes = [outcome for outcome in Outcome if has_others or outcome != Outcome.NOT_COUNTED]
    head = ["arm", "graphs", *map(str, outcomes), "S(-3)", "ES(1)", "right ones (95 %)"]
    head += ["families", "compile", "memory"]
    rows = [
        [
            summary.name,
            str(summary.num_graphs),
            *(str(summary.counts.get(outcome, 0)) for outcome in outcomes),
            _two_decimals(summary.s),
            _two_decimals(summary.es),
            mean_text(summary.speedup),
            str(summary.speedup.num_families),
            seconds_text(summary.compile_s),
            times_text(summary.memory_ratio),
        ]
        for summary in summaries
    ]
    return head, rows


def headline(summaries: Sequence[Summary], machine: str) -> str:
    """Return one sentence with the best S(-3) on a machine, each family counted once.

    Only arms with at least `MIN_HEADLINE_FAMILIES` families are named, and no baselines.

    >>> headline([], "AMD EPYC, 2 CPUs")
    'AMD EPYC, 2 CPUs: no headline, since no compiler ran on 100 families.'
    """
    arms = [summary for summary in summaries if summary.compiler not in CONTROLS]
    eligible = [
        summary
        for summary in arms
        if summary.s_family.value is not None
        and summary.s_family.num_families >= MIN_HEADLINE_FAMILIES
    ]
    eligible.sort(key=lambda summary: -(summary.s_family.value or 0.0))
    if not eligible:
        most = max((summary.s_family.num_families for summary in arms), default=0)
        but = f" (the most is {most})" if most else ""
        return printable_line(
            f"{machine}: no headline, since no compiler ran on {MIN_HEADLINE_FAMILIES} families"
            f"{but}."
        )
    listed = [
        f"{summary.name} {score_text(summary.s_family)} with "
        f"{summary.s_family.num_families} families"
        for summary in eligible[:MAX_IN_HEADLINE]
    ]
    more = len(eligible) - len(listed)
    if more:
        listed.append(f"{more} more below")
    return printable_line(
        f"{machine}: S({TOLERANCE}) where each family counts once (1 is eager): "
        f"{'; '.join(listed)}."
    )


def conclusions(summaries: Sequence[Summary]) -> list[str]:
    """Return sentences on which arms differ significantly from eager and from each other.

    Each statement follows from one 95 % interval over families; arms are compared on the samples
    that both get right.
    """
    lines = []
    for direction, word in ((1, "Faster than eager"), (-1, "Slower than eager")):
        names = [summary.name for summary in summaries if summary.speedup.direction == direction]
        if names:
            side = "above" if direction == 1 else "below"
            lines.append(f"{word} (interval {side} 1): {', '.join(names)}.")
    for summary in summaries:
        if summary.speedup.direction == 0:
            lines.append(f"{summary.name}: {not_distinguishable(summary.speedup)}.")
        elif summary.speedup.direction is None:
            lines.append(f"{summary.name}: {no_interval(summary.speedup)}.")
    return [printable_line(line) for line in [*lines, *_pairs(summaries)]]


def mean_text(mean: Mean) -> str:
    """Return a geometric mean of speedups with its interval.

    >>> mean_text(Mean(1.164, 0.93, 1.412, 6))
    '1.16x (0.93 to 1.41)'
    """
    if mean.value is None:
        return "-"
    text = times_text(mean.value)
    if mean.low is None or mean.high is None:
        return text
    ends = [_two_decimals(end) for end in (mean.low, mean.high)]
    if mean.direction and "1.00" in ends:  # with two decimals, 1 would seem to be inside
        ends = [f"{end:.4f}" for end in (mean.low, mean.high)]
    return f"{text} ({ends[0]} to {ends[1]})"


def score_text(mean: Mean) -> str:
    """Return S(t) with its interval.

    >>> score_text(Mean(1.164, 0.93, 1.412, 6))
    '1.16 (0.93 to 1.41)'
    """
    return mean_text(mean).replace("x", "", 1)


def times_text(value: float | None) -> str:
    """Return a ratio with two decimals, or two digits if it is below 0.1.

    >>> times_text(1.164), times_text(0.0123), times_text(None)
    ('1.16x', '0.012x', '-')
    """
    return "-" if value is None else f"{_two_decimals(value)}x"


def seconds_text(value: float | None) -> str:
    """Return a duration in seconds with two digits.

    >>> seconds_text(21.3), seconds_text(0.123), seconds_text(1e-6), seconds_text(None)
    ('21 s', '0.12 s', '0 s', '-')
    """
    if value is None:
        return "-"
    if value < 0.005:
        return "0 s"
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"


def compared_with_eager(mean: Mean) -> str:
    """Return whether an arm is faster or slower than eager, or why this is unknown.

    >>> compared_with_eager(Mean(1.16, 1.01, 1.33, 6))
    'faster than eager'
    """
    if mean.direction is None:
        return no_interval(mean)
    if mean.direction == 0:
        return not_distinguishable(mean)
    return "faster than eager" if mean.direction == 1 else "slower than eager"


def not_distinguishable(mean: Mean) -> str:
    """Return why an arm cannot be distinguished from eager.

    >>> not_distinguishable(Mean(1.16, 0.93, 1.41, 6))
    'not distinguishable from eager with 6 families; about 12 would be needed'
    """
    needed = mean.families_needed()
    if needed is None or needed > MAX_FAMILIES_NEEDED:
        why = "the mean is too close to 1"
    else:
        why = f"about {float(f'{needed:.2g}'):.0f} would be needed"
    families = counted(mean.num_families, "family", "families")
    return f"not distinguishable from eager with {families}; {why}"


def no_interval(mean: Mean) -> str:
    """Return why there is no interval.

    >>> no_interval(Mean(2.0, None, None, 3))
    'no interval: 3 model families are too few (5 are needed). Add graphs, or read them one by one'
    """
    if mean.num_families == 0:
        return "no interval: no graph is right"
    families = counted(mean.num_families, "model family is", "model families are")
    return (
        f"no interval: {families} too few ({MIN_FAMILIES} are needed). Add graphs, or read them "
        "one by one"
    )


def closing_lines(summary: Summary) -> list[str]:
    """Return the verdict on one arm after a run: counts, S(-3), the speedup, the slowest graph."""
    counts = summary.counts
    num_right = counts.get(Outcome.RIGHT, 0)
    others = [
        f"{counts[outcome]} {outcome}"
        for outcome in Outcome
        if outcome is not Outcome.RIGHT and counts.get(outcome)
    ]
    text = ", ".join([f"{num_right} of {summary.num_graphs} right", *others])
    if summary.s is not None:
        score = Mean(summary.s, summary.s_low, summary.s_high, 0)
        text += f". S({TOLERANCE}) = {score_text(score)}"
        if counts.get(Outcome.WRONG) or counts.get(Outcome.FAILED):
            text += f", where a wrong or failed graph counts as {summary.b:g}x"
    lines = [f"{summary.name}: {text}."]
    mean = summary.speedup
    if mean.value is not None:
        subject = "Speedup" if num_right == summary.num_graphs else "The right ones alone"
        lines.append(f"{subject}: {mean_text(mean)}, {compared_with_eager(mean)}.")
    if len(summary.right_samples) > 1 and (slowest := summary.slowest()):
        lines.append(f"Slowest: {slowest[0]}, {times_text(slowest[1])}.")
    return [printable_line(line) for line in lines]


def describe_run(record: Mapping[str, Any]) -> tuple[Outcome, str]:
    """Return the outcome of one run record and a line about it, without the name of the sample.

    >>> describe_run({"sample_id": "a", "status": "ok", "speedup": 1.24, "min_t": -5.0,
    ...     "speedup_low": 1.19, "speedup_high": 1.29})[1]
    'right   1.24x (1.19 to 1.29)'
    """
    (verdict,) = verdicts(as_table([record]), find_variant("report"))
    outcome = OUTCOME_OF[verdict]
    if outcome is Outcome.RIGHT:
        mean = Mean(record["speedup"], record.get("speedup_low"), record.get("speedup_high"), 1)
        text = mean_text(mean)
        if record.get("is_candidate_launch_bound"):
            text += "   launch bound"
    elif outcome is Outcome.WRONG:
        text = _describe_wrong(record)
    elif outcome is Outcome.FAILED:
        phase = "compiling" if record["status"] == Status.COMPILE_FAILED else "running"
        text = f"while {phase}: {_message(record)}"
    elif outcome is Outcome.UNDECIDABLE:
        text = undecidable_reason(record) or vacuous_reason(record)
    elif record["status"] == Status.OK:
        text = first_of(IMPOSSIBLE, record) or NONDETERMINISTIC
    else:
        who = "eager failed" if record["status"] == Status.BASELINE_FAILED else "the harness failed"
        text = f"{who}: {_message(record)}"
    word = str(outcome).upper() if outcome is Outcome.WRONG else str(outcome)
    return outcome, printable_line(f"{word:6}  {text}")


def _describe_wrong(record: Mapping[str, Any]) -> str:
    if record["status"] != Status.OK:
        return _message(record)
    outputs = record.get("outputs") or []
    where = f"at t = {TOLERANCE}"
    if not outputs:
        return where
    index = max(range(len(outputs)), key=lambda place: _min_t(outputs[place]))
    output = outputs[index]
    if output.get("is_random") and output.get("p_value") is not None:
        test = output.get("random_test")
        return f"distribution of output {index} differs (p = {output['p_value']:.1g}, {test})"
    if output.get("is_nonfinite_mismatch"):
        return f"{where} (NaN or infinity in output {index} unlike eager, or missing)"
    error = output.get("max_abs_error")
    if error is None:
        return f"{where} in output {index}"
    text = f"{where} (largest error {error:.1g} in output {index}{_place_of_error(record, index)}"
    if _min_t(output) <= TOLERANCE:
        text += ", as far from eager as zeros"
    return f"{text})"


def _place_of_error(record: Mapping[str, Any], output: int) -> str:
    """Return the index of the largest error of an output, "" if it is unknown or a scalar."""
    elements = record.get("wrong_elements") or []
    if not elements or elements[-1]["output"] != output or not elements[-1]["index"]:
        return ""
    return f" at {elements[-1]['index']}"


def _min_t(output: Mapping[str, Any]) -> float:
    return math.inf if output.get("min_t") is None else output["min_t"]


def _message(record: Mapping[str, Any]) -> str:
    name = (record.get("error_type") or "").rpartition(".")[2]
    message = " ".join((record.get("error_message") or "").split())
    text = ": ".join(part for part in (name, message) if part)
    text = text or str(record.get("reason") or record["status"])
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


def _pairs(summaries: Sequence[Summary]) -> list[str]:
    """Return sentences about pairs of arms; the faster arm is named only for a single pair."""
    arms = [summary for summary in summaries if summary.compiler not in CONTROLS]
    pairs = list(itertools.combinations(arms, 2))
    comparable = [pair for pair in pairs if can_be_compared(*pair)]
    means = [(pair, relative_speedup(*pair)) for pair in comparable]
    lines = []
    if len(means) <= MAX_PAIRS:
        for (first, second), mean in means:
            if mean.direction:
                faster, slower = (second, first) if mean.direction == 1 else (first, second)
                lines.append(
                    f"{faster.name} is faster than {slower.name} ({_over(mean)} on the graphs that "
                    f"both get right, {counted(mean.num_families, 'family', 'families')})."
                )
    unclear = [(pair, mean) for pair, mean in means if mean.direction == 0]
    if unclear:
        shown = [
            f"{first.name} and {second.name} ({_over(mean)}, "
            f"{counted(mean.num_families, 'family', 'families')})"
            for (first, second), mean in unclear[:MAX_PAIRS]
        ]
        more = len(unclear) - len(shown)
        if more:
            shown.append(f"{more} more pairs")
        lines.append(
            f"Not distinguishable, since the interval of their ratio contains 1: "
            f"{'; '.join(shown)}."
        )
    if len(means) > MAX_PAIRS:
        num_clear = sum(bool(mean.direction) for _, mean in means)
        lines.append(f"The other {num_clear} pairs with at least five common families differ.")
    few = [pair for pair, mean in means if mean.direction is None]
    if few:
        names = "; ".join(f"{first.name} and {second.name}" for first, second in few[:3])
        names += "" if len(few) <= 3 else f"; {len(few) - 3} more"
        lines.append(f"Fewer than {MIN_FAMILIES} common families, so no comparison: {names}.")
    if len(comparable) < len(pairs):
        number = counted(len(pairs) - len(comparable), "pair")
        lines.append(f"Not compared: {number} of arms without a common right graph or device.")
    return lines


def _over(mean: Mean) -> str:
    """Return how many times faster the faster arm is, with its interval."""
    if mean.direction == 1 or mean.value is None or mean.low is None or mean.high is None:
        return mean_text(mean)
    return mean_text(Mean(1 / mean.value, 1 / mean.high, 1 / mean.low, mean.num_families))


def _two_decimals(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
