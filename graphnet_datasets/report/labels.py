"""Labels of lines, bars and panels: short names, counts, devices, speedups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from ..scores import Scores
from ..scores.variants import TOLERANCE
from ..terminal import printable

MAX_LABEL = 42
"""Maximum length of a label beside a line or a bar."""


def compact_names(names: Sequence[str]) -> dict[str, str]:
    """Return a short name for each run set: the compiler, and the options that tell it from others.

    Options that all run sets of one compiler share are left out, and names of options are left out
    where the value suffices. Names that would become equal stay as they are.

    >>> names = ["tvm", "inductor (freezing=false, mode=default)"]
    >>> names.append("inductor (freezing=true, mode=x)")
    >>> list(compact_names(names).values())
    ['tvm', 'inductor (no freezing, default)', 'inductor (freezing, x)']
    >>> compact_names(["eager (device cpu)"])["eager (device cpu)"]
    'eager'
    """
    parts = {name: _split(name) for name in names}
    compact: dict[str, str] = {}
    for name, (compiler, details) in parts.items():
        others = [set(own) for other, own in parts.values() if other == compiler]
        shared = set.intersection(*others)
        own_options = ", ".join(_option(detail) for detail in details if detail not in shared)
        compact[name] = f"{compiler} ({own_options})" if own_options else compiler
    short_names = list(compact.values())
    return {
        name: label if short_names.count(label) == 1 else name for name, label in compact.items()
    }


def line_labels(names: Sequence[str], limit: int = MAX_LABEL) -> dict[str, str]:
    """Return a different label of at most about `limit` characters for each name, for matplotlib.

    >>> line_labels(["x" * 50, "x" * 51], 10)["x" * 51]
    'xxxxx…xxxx [2]'
    """
    labels: dict[str, str] = {}
    counts: dict[str, int] = {}
    for name, compact in compact_names(names).items():
        label = middle_out(compact, limit)
        counts[label] = counts.get(label, 0) + 1
        labels[name] = label if counts[label] == 1 else f"{label} [{counts[label]}]"
    return labels


def middle_out(name: str, limit: int) -> str:
    """Shorten a name in its middle and escape it, so that matplotlib shows it literally.

    >>> middle_out("timm/a-very-long-name.in1k", 16)
    'timm/a-v…me.in1k'
    """
    name = printable(name)
    if len(name) > limit:
        end = (limit - 1) // 2
        name = f"{name[: limit - 1 - end]}…{name[len(name) - end :]}"
    return _literal(name)


def panel_note(scores: Iterable[Scores]) -> str:
    """Return N and the share of samples on which zeros pass, as ranges over the run sets."""
    scores = list(scores)
    parts = [f"N = {_range([score.num_samples for score in scores])}"]
    shares = {t: [score.at(t)["vacuous_share"] for score in scores] for t in (TOLERANCE, 0)}
    if not any(None in values for values in shares.values()):
        listing = ", ".join(
            f"{_range([round(100 * share) for share in values])} % at t = {t}"
            for t, values in shares.items()
        )
        parts.append(f"zeros pass {listing}")
    return "; ".join(parts)


def count_label(num_correct: int, total: int | None) -> str:
    """Format the number of samples drawn, and the total.

    >>> count_label(895, 1272), count_label(3, None)
    ('895 of 1,272', '3')
    """
    return f"{num_correct:,}" if total is None else f"{num_correct:,} of {total:,}"


def times(log2_speedup: float, digits: int = 3) -> str:
    """Format a speedup as a multiple of eager.

    >>> times(2), times(-1), times(0.5)
    ('4x', '0.5x', '1.41x')
    """
    return f"{2**log2_speedup:.{digits}g}x"


def short(name: str, limit: int = 22) -> str:
    """Shorten a name at its end and escape it, so that matplotlib shows it literally."""
    name = printable(name)
    return _literal(name if len(name) <= limit else f"{name[: limit - 1]}…")


def panel_title(task: str, panel: Mapping[str, Scores]) -> str:
    """Return the title of a panel: the task, N, and the share on which zeros would pass."""
    title = f"{short(task)} (N = {_range([scores.num_samples for scores in panel.values()])})"
    shares = [scores.at(TOLERANCE)["vacuous_share"] for scores in panel.values()]
    if None in shares:
        return title
    shares_text = _range([round(100 * share) for share in shares])
    return f"{title}\nzeros pass {shares_text} % at t = {TOLERANCE}"


def device_of(table: pa.Table) -> str:
    """Return the device of a run set, or all kinds of device if there are several."""
    names = {name.partition(":")[0] for name in table["device"].to_pylist() if name}
    return ", ".join(sorted(names))


def devices_text(devices: Iterable[str]) -> str:
    """Return where run sets ran, for a title.

    >>> devices_text(["cuda", "cpu", "cpu"]), devices_text([""])
    (' on cpu, cuda', '')
    """
    kinds = sorted({middle_out(device, MAX_LABEL) for device in devices if device})
    return f" on {', '.join(kinds)}" if kinds else ""


def _range(numbers: Sequence[int]) -> str:
    least, greatest = min(numbers), max(numbers)
    return f"{least:,}" if least == greatest else f"{least:,} to {greatest:,}"


def _literal(name: str) -> str:
    return f"{' ' if name.startswith('_') else ''}{name}".replace("$", r"\$")


def _split(name: str) -> tuple[str, list[str]]:
    compiler, bracket, rest = name.partition(" (")
    if not bracket or not rest.endswith(")"):
        return name, []
    return compiler, rest[:-1].split(", ")


def _option(detail: str) -> str:
    name, sign, value = detail.partition("=")
    if not sign:
        return detail.removeprefix("device ")
    if value in ("true", "false"):
        return name if value == "true" else f"no {name}"
    return value
