"""Reading of the kernel's time stamps of a run, with checks of their order."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from ...isolation import PHASE_PREFIX, Stamp
from ...timing.calls import ARMS
from ..handover import LAYOUT, LOOK

_NS_PER_MS = 1e6


class TimesError(Exception):
    """The reported times are inconsistent; `is_forged` if an honest worker cannot send them."""

    def __init__(self, message: str, *, is_forged: bool) -> None:
        super().__init__(message)
        self.is_forged = is_forged


@dataclasses.dataclass(frozen=True)
class Look:
    """The hash of an inspected output excerpt, and the milliseconds since the end of the call."""

    after_ms: float
    digest: str


def read_looks(stamps: Sequence[Stamp]) -> dict[str, list[Look]]:
    """Return the inspections of each arm's outputs; each directly follows its call.

    Raises:
        TimesError: an inspection does not follow its call.

    >>> labels = ["+candidate 0", "-candidate 0", "=candidate 0 ab12"]
    >>> read_looks([Stamp(label, 10**6 * place) for place, label in enumerate(labels)])
    {'baseline': [], 'candidate': [Look(after_ms=1.0, digest='ab12')]}
    """
    looks: dict[str, list[Look]] = {arm: [] for arm in ARMS}
    for before, stamp in itertools.pairwise(stamps):
        if stamp.label.startswith(LOOK):
            name, _, digest = stamp.label[1:].rpartition(" ")
            arm = name.partition(" ")[0]
            if before.label != f"-{name}" or arm not in looks:
                raise TimesError(
                    f"The outputs of call `{name[:40]}` were inspected, but it had not just ended.",
                    is_forged=True,
                )
            looks[arm].append(Look((stamp.at_ns - before.at_ns) / _NS_PER_MS, digest))
    return looks


def read_layouts(stamps: Sequence[Stamp]) -> dict[str, list[float]]:
    """Return the milliseconds that preparing the inputs of each call took, by arm.

    `first` contains the calls of eager before the candidate was loaded.

    Raises:
        TimesError: a call did not directly follow its preparation.

    >>> labels = ["<first 0", "+first 0", "-first 0"]
    >>> read_layouts([Stamp(label, 10**6 * place) for place, label in enumerate(labels)])
    {'baseline': [], 'candidate': [], 'first': [1.0]}
    """
    layouts: dict[str, list[float]] = {arm: [] for arm in (*ARMS, "first")}
    for stamp, after in itertools.pairwise(stamps):
        if stamp.label.startswith(LAYOUT):
            name = stamp.label.removeprefix(LAYOUT)
            arm = name.partition(" ")[0]
            if after.label != f"+{name}" or arm not in layouts:
                raise TimesError(
                    f"Inputs were prepared for call `{name[:40]}`, but another call followed.",
                    is_forged=True,
                )
            layouts[arm].append((after.at_ns - stamp.at_ns) / _NS_PER_MS)
    return layouts


@dataclasses.dataclass(frozen=True)
class StampedTimes:
    """Times from the stamps of a run: milliseconds per call, including the stamping."""

    first_ms: list[float]
    baseline_ms: list[float]
    candidate_ms: list[float]
    is_candidate_first: list[bool]


def read_calls(stamps: Sequence[Stamp]) -> dict[str, list[tuple[str, float]]]:
    """Return the name and milliseconds of each call in order, by the phase of the call.

    Raises:
        TimesError: a stamp is missing, duplicated or out of order.
    """
    phase, begun = "", None
    calls: dict[str, list[tuple[str, float]]] = {"baseline": [], "run": []}
    for stamp in stamps:
        sign, name = stamp.label[:1], stamp.label[1:]
        if sign == LOOK and begun is None and phase == "run":
            continue  # see `read_looks`
        if sign == LAYOUT and begun is None and phase in calls:
            continue  # see `read_layouts`
        if stamp.label.startswith(PHASE_PREFIX) and begun is None:
            phase = stamp.label.removeprefix(PHASE_PREFIX)
            phase = "baseline" if phase == "first" else phase
        elif sign == "+" and begun is None and phase in calls:
            begun = stamp
        elif sign == "-" and begun is not None and begun.label[1:] == name:
            elapsed_ms = max(stamp.at_ns - begun.at_ns, 1) / _NS_PER_MS
            calls[phase].append((name, elapsed_ms))
            begun = None
        else:
            raise TimesError(
                f"The stamp `{stamp.label[:40]}` of a call arrived outside the timed calls.",
                is_forged=True,
            )
    if begun is not None:
        raise TimesError("The stamp of the end of a call is missing.", is_forged=True)
    return calls


def read_stamps(stamps: Sequence[Stamp]) -> StampedTimes:
    """Return the times of the calls; the calls must be in order, pair by pair.

    Raises:
        TimesError: a stamp is missing, duplicated or out of order.

    >>> calls = ["baseline 0", "candidate 0"]
    >>> labels = ["phase run", *(sign + call for call in calls for sign in "+-")]
    >>> stamps = [Stamp(label, 10**6 * 2**place) for place, label in enumerate(labels)]
    >>> read_stamps(stamps)
    StampedTimes(first_ms=[], baseline_ms=[2.0], candidate_ms=[8.0], is_candidate_first=[False])
    """
    calls = read_calls(stamps)
    first = [elapsed_ms for _, elapsed_ms in calls["baseline"]]
    times: dict[str, list[float]] = {arm: [] for arm in ARMS}
    orders = []
    for place, (name, elapsed_ms) in enumerate(calls["run"]):
        arm, _, pair = name.partition(" ")
        if arm not in times or pair != str(len(times[arm])) or len(times[arm]) != place // 2:
            raise TimesError(
                f"The stamps of call `{name[:40]}` are not those of the expected call.",
                is_forged=True,
            )
        times[arm].append(elapsed_ms)
        if place % 2 == 0:
            orders.append(arm == "candidate")
    return StampedTimes(first, times["baseline"], times["candidate"], orders)
