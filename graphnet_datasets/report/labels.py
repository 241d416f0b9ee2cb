"""Labels of lines, bars and panels: short names, counts, devices, speedups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ..scores import Scores
from ..scores.variants import TOLERANCE
from ..terminal import printable

MAX_LABEL = 42
"""Maximum length of a label beside a line or a bar."""
MAX_TITLE = 22
"""Maximum length of the title of a panel."""


def compact_names(names: Sequence[str]) -> dict[str, str]:
    """Return a short name for each run set: the compiler and its distinguishing options.

    Options that all run sets of one compiler share are omitted, and so are names of options where
    the value suffices. Names whose short forms would be equal are not shortened.

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


def count_label(number: int, total: int | None) -> str:
    """Format the number of samples drawn, and the total if it is known.

    >>> count_label(895, 1272), count_label(3, None)
    ('895 of 1,272', '3')
    """
    return f"{number:,}" if total is None else f"{number:,} of {total:,}"


def times(log2_speedup: float, digits: int = 3) -> str:
    """Format a speedup as a multiple of eager.

    >>> times(2), times(-1), times(0.5)
    ('4x', '0.5x', '1.41x')
    """
    return f"{2**log2_speedup:.{digits}g}x"


def short(title: str) -> str:
    """Shorten a title at its end and escape it, so that matplotlib shows it literally."""
    title = printable(title)
    return _literal(title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…")


def panel_note(scores: Collection[Scores], tolerances: Sequence[int] = (TOLERANCE, 0)) -> list[str]:
    """Return N and the share of samples on which zeros pass, as ranges over the run sets."""
    notes = [f"N = {_range([score.num_samples for score in scores])}"]
    shares = {t: [score.at(t)["vacuous_share"] for score in scores] for t in tolerances}
    if not any(None in values for values in shares.values()):
        listing = ", ".join(
            f"{_range([round(100 * share) for share in values])} % at t = {t}"
            for t, values in shares.items()
        )
        notes.append(f"zeros pass {listing}")
    return notes


def panel_title(task: str, panel: Mapping[str, Scores]) -> str:
    """Return the title of a panel: the task, N, and the share of samples on which zeros pass."""
    size, *shares = panel_note(panel.values(), (TOLERANCE,))
    return "\n".join([f"{short(task)} ({size})", *shares])


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
