"""`graphnet doctor`: whether this machine can run samples."""

from __future__ import annotations

import json
import os
import platform
from typing import Annotated

import typer

from .terminal import echo

app = typer.Typer()


@app.command("doctor", epilog="Example: graphnet doctor --json")
def print_state(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the layers of confinement, the frameworks and the load of this machine."""
    from ..frameworks import framework_named, framework_names
    from ..isolation.confinement import available_layers
    from ..version import __version__

    layers = available_layers()
    versions = {}
    for name in framework_names():
        framework = framework_named(name)
        if framework.is_installed:
            versions[name] = next(iter(framework.versions().values()))
    threads, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    if as_json:
        state = {
            "graphnet_datasets": __version__,
            "python": platform.python_version(),
            "frameworks": versions,
            "threads": threads,
            "load": load,
            "confinement": layers,
        }
        echo(json.dumps(state, indent=2))
        return
    echo(f"Confinement  {', '.join(f'{name} {_on(is_on)}' for name, is_on in layers.items())}")
    packages = {"graphnet-datasets": __version__, "Python": platform.python_version(), **versions}
    echo(f"Versions     {', '.join(f'{name} {version}' for name, version in packages.items())}")
    echo(f"Machine      {threads} threads, load {load:.1f}")
    if not all(layers.values()):
        missing = [name for name, is_on in layers.items() if not is_on]
        echo(
            f"\nThis system lacks {' and '.join(missing)}. Workers run without; run samples of "
            "strangers on another machine or in a container with a recent kernel."
        )
    if load > threads / 2:
        echo("\nOther processes use the processors. Timings will have wide intervals.")


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"
