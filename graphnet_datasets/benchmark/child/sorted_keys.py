"""Keys of sorts and searches, which distinguish valid orders of tied elements from invalid ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...analysis.orders import find_orders, keys_sample
from ...frameworks.outputs import append_described
from ...isolation import Reporter, describe_error
from ...sample import Sample
from ..handover import KEYS, MAX_KEYS_BYTES, WRITTEN, keys_message
from ..worker_job import WorkerJob
from .arms import Arm
from .setup import load_workload


def hand_over_keys(
    job: WorkerJob,
    sample: Sample,
    reporter: Reporter,
    directory: Path,
    set_indices: Iterable[int],
    *,
    is_fresh: bool,
    written: Sequence[str],
) -> None:
    """Hand over the keys of a sample's open orders under eager, for each input set.

    `written` names the inputs that eager changes. Without keys some outputs are undecidable, so a
    failure is reported, not raised.
    """
    orders = find_orders(sample)
    if orders is None:
        return
    reporter.send({WRITTEN: list(written)})
    num_keys = sum(len(order.all_keys) for order in orders.operators)
    if num_keys == 0:
        return
    try:
        own = dataclasses.replace(job, is_first=False)
        workload = load_workload(own, directory, keys_sample(sample, orders))
        workload.note_writes()
        workload.is_fresh = is_fresh
        arm = Arm(workload, workload.module)
        with (directory / KEYS).open("wb") as file:
            for number, set_index in enumerate(set_indices):
                if file.tell() > MAX_KEYS_BYTES:
                    return
                arm.prepare(set_index)
                arm()
                keys = workload.runtime.excerpt(arm.results(), None)[:num_keys]
                reporter.send({keys_message(number): append_described(keys, file)})
    except Exception as error:  # failing operators in the key computation, or lack of memory
        reporter.send({"keys_problem": describe_error(error)})
