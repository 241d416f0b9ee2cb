"""Runs a sample once and hands its outputs over; imports the one framework that it is told to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...frameworks import FRAMEWORK_VARIABLE, make_inputs, materialize, module
from ...frameworks.runtime import make_runtime
from ...inputs import prepare_blocks
from ...isolation import Reporter, serve
from ...schema.sample_files import read_sample
from ..handover import FIRST

PHASES = ("load", "run")


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    """Run the sample in `directory` on its inputs and write what it gives."""
    sample = read_sample(directory)
    runtime = make_runtime(sample.framework, "cpu", payload["num_threads"])
    callable_ = materialize(sample, allow_unchecked_operators=True)  # in a process of its own
    inputs = make_inputs(sample, payload["seed"], payload["mode"])
    reporter.enter("run")
    runtime.seed(payload["seed"])
    outputs = callable_(**inputs)
    reporter.send({"outputs": runtime.write_outputs(outputs, directory / FIRST)})


def main() -> None:
    """Import the framework, prepare what all jobs need, and serve them."""
    framework = os.environ[FRAMEWORK_VARIABLE]
    make_runtime(framework, "cpu", 1)
    module(framework, "materialize")
    prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
