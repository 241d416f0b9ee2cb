"""`graphnet device`: the measured peak rates of this device."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from .terminal import echo

if TYPE_CHECKING:
    from ..benchmark.judging.roofline import PeakRates

app = typer.Typer()


@app.command("device", epilog="Example: graphnet device --device cuda:0 --refresh")
def print_device(
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:N.")] = "cpu",
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads on a CPU. Default: all.")
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Repeat measurements that are cached.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the device's measured peak rates, from which lower bounds of run times follow.

    They are measured once per environment and number of threads, in a few seconds. A measurement on
    a busy machine is repeated by the next command.
    """
    from ..benchmark.judging.roofline import peak_rates
    from ..frameworks.builds import check_device

    check_device(device, ("torch",))
    peaks = peak_rates(device, num_threads=threads, refresh=refresh)
    if as_json:
        echo(json.dumps(dataclasses.asdict(peaks), indent=2))
        return
    rows = [
        ("device", peaks.device),
        ("threads", str(peaks.num_threads)),
        *(
            (f"products in {dtype}", f"{rate / 1e12:.3g} TFLOP/s")
            for dtype, rate in peaks.flops_per_s.items()
        ),
        ("copies", f"{peaks.bytes_per_s / 1e9:.3g} GB/s read and written"),
        ("last cache", f"{peaks.cache_bytes / 2**20:.3g} MiB"),
        ("measured", _machine_state(peaks)),
        ("environment", peaks.environment_id),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        echo(f"{name:<{width}}  {value}")


def _machine_state(peaks: PeakRates) -> str:
    """Describe briefly how busy the machine was when the rates were measured."""
    if peaks.load is None or peaks.other_cpu_share is None:
        return "by an older version, under an unknown load"
    state = "quiet" if peaks.is_quiet else "busy: the rates may be too low"
    return f"at load {peaks.load:.2g}, {peaks.other_cpu_share:.0%} for other processes ({state})"
