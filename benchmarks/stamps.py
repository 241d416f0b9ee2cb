"""How exactly the kernel's stamps time a call: what sending them takes, against the wall clock.

    python benchmarks/stamps.py

Prints one JSON object for each size of a call: the median microseconds that two stamps add to its
time by the wall clock inside them, the 10th and 90th percentile of that, and by what share the
median time changes once the median of nine other calls is taken off, as a run does.
"""

from __future__ import annotations

import json
import statistics

import torch

from graphnet_datasets.isolation.stamps import StampReader, StampSender, stamp_sockets
from graphnet_datasets.timing.clocks import WallClock

NUM_CALLS = 400


def main() -> None:
    torch.set_num_threads(1)
    ours, theirs = stamp_sockets()
    sender, reader = StampSender(theirs.detach()), StampReader(ours)
    clock, began, ended = WallClock(), sender.encode("+call 0"), sender.encode("-call 0")
    for size in (1, 64, 256, 1024):
        x = torch.randn(size, size)
        walls = []
        reader.stamps.clear()
        for _ in range(NUM_CALLS):
            x.clone()  # what a run does before each call
            sender.send(began)
            walls.append(clock.measure(lambda x=x: x @ x).wall_ms)
            sender.send(ended)
            reader.drain()
        stamps = reader.stamps
        noted = [
            (end.at_ns - begin.at_ns) / 1e6
            for begin, end in zip(stamps[::2], stamps[1::2], strict=True)
        ]
        added = [1000 * (one - other) for one, other in zip(noted, walls, strict=True)]
        taken_off = statistics.median(added[:9]) / 1000
        later = statistics.median(noted[9:]) - taken_off
        tenths = statistics.quantiles(added, n=10)
        print(
            json.dumps(
                {
                    "what": f"stamps around the product of two matrices of {size} x {size}",
                    "call_ms": statistics.median(walls),
                    "added_us": statistics.median(added),
                    "added_us_p10": tenths[0],
                    "added_us_p90": tenths[-1],
                    "error_share": later / statistics.median(walls[9:]) - 1,
                    "is_kernel_time": reader.is_kernel_time,
                }
            )
        )
    sender.close()
    reader.close()


if __name__ == "__main__":
    main()
