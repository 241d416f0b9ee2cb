"""Labels of lines and violins: short names, counts, devices, speedups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from ..scores import Scores
from ..scores.variants import TOLERANCE
from ..terminal import printable


def legend_label(name: str, scores: Scores, device: str) -> str:
    """Return the legend label of a run set: N, device, and the share on which zeros would pass."""
    parts = [f"N = {scores.num_samples:,}"] + ([device] if device else [])
    shares = {t: scores.at(t)["vacuous_share"] for t in (TOLERANCE, 0)}
    if None not in shares.values():
        listing = ", ".join(f"{100 * share:.0f} % at t = {t}" for t, share in shares.items())
        parts.append(f"zeros pass {listing}")
    return f"{short(name, 40)} ({'; '.join(parts)})"


def with_device(name: str, device: str) -> str:
    """Return the name of a run set with its device, if known."""
    return f"{short(name, 40)} ({device})" if device else short(name, 60)


def count_label(num_correct: int, total: int | None, is_wide: bool) -> str:
    """Format the number of samples drawn, and the total.

    >>> count_label(895, 1272, True), count_label(3, None, True)
    ('n = 895 of 1,272', 'n = 3')
    """
    if total is None:
        return f"n = {num_correct:,}"
    between = " of " if is_wide else "\nof "
    return f"n = {num_correct:,}{between}{total:,}"


def times(log2_speedup: float) -> str:
    """Format a speedup as a multiple of eager.

    >>> times(2), times(-1), times(0.5)
    ('4x', '0.5x', '1.41x')
    """
    return f"{2**log2_speedup:.3g}x"


def short(name: str, limit: int = 22) -> str:
    """Shorten a name and escape it, so that matplotlib shows it literally."""
    name = printable(name)
    name = name if len(name) <= limit else f"{name[: limit - 1]}…"
    return f"{' ' if name.startswith('_') else ''}{name}".replace("$", r"\$")


def panel_title(task: str, panel: Mapping[str, Scores]) -> str:
    """Return the title of a panel: the task, N, and the share on which zeros would pass."""
    title = f"{short(task)} (N = {_range([scores.num_samples for scores in panel.values()])})"
    shares = [scores.at(TOLERANCE)["vacuous_share"] for scores in panel.values()]
    if None in shares:
        return title
    shares_text = _range([round(100 * share) for share in shares])
    return f"{title}\nzeros pass {shares_text} % at t = {TOLERANCE}"


def _range(numbers: Sequence[int]) -> str:
    least, greatest = min(numbers), max(numbers)
    return f"{least:,}" if least == greatest else f"{least:,} to {greatest:,}"


def device_of(table: pa.Table) -> str:
    """Return the device of a run set, or all kinds of device if there are several."""
    names = {name.partition(":")[0] for name in table["device"].to_pylist() if name}
    return ", ".join(sorted(names))
