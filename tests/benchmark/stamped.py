"""What the kernel notes of the calls of a worker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphnet_datasets.isolation import Stamp

OVERHEAD_MS = 0.003
"""What stamping takes here."""


def stamps_of(
    baseline_ms: Iterable[float],
    candidate_ms: Iterable[float],
    orders: Sequence[bool],
    first_ms: Iterable[float] = (2.0, 2.0),
) -> list[Stamp]:
    """Return the stamps of calls of these times; `orders` says where the candidate was first."""
    stamps: list[Stamp] = []
    now = 10**18

    def call(name: str, elapsed_ms: float) -> None:
        nonlocal now
        stamps.append(Stamp(f"+{name}", now))
        now += round((elapsed_ms + OVERHEAD_MS) * 1e6)
        stamps.append(Stamp(f"-{name}", now))
        now += 10**6

    stamps.append(Stamp("phase baseline", now))
    for index, elapsed_ms in enumerate(first_ms):
        call(f"first {index}", elapsed_ms)
    stamps += [Stamp("phase compile", now), Stamp("phase run", now)]
    for pair, (eager_ms, compiled_ms, is_first) in enumerate(
        zip(baseline_ms, candidate_ms, orders, strict=True)
    ):
        both = [(f"baseline {pair}", eager_ms), (f"candidate {pair}", compiled_ms)]
        for name, elapsed_ms in reversed(both) if is_first else both:
            call(name, elapsed_ms)
    return stamps
