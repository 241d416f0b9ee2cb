"""Fork server for isolated modules: each job materializes one sample and answers calls."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

from ..inputs import prepare_blocks
from ..isolation import Reporter
from ..schema.sample_files import read_sample
from .contract import FRAMEWORK_VARIABLE, module
from .dispatch import materialize
from .isolated import (
    ANSWERS,
    ARGUMENTS,
    OUTPUTS,
    REQUESTS,
    as_value,
    describe_structure,
    kind_of,
    read_tensors,
)
from .outputs import leaves
from .runtime import make_runtime

_MAX_MESSAGE = 2000


def work(payload: dict[str, Any], _reporter: Reporter, directory: Path) -> None:
    """Materialize the sample in `directory`, and call it once per request."""
    answers = os.open(directory / ANSWERS, os.O_RDWR | os.O_CLOEXEC)

    def answer(message: dict[str, Any]) -> None:
        os.write(answers, json.dumps(message).encode() + b"\n")

    try:
        sample = read_sample(directory)
        runtime = make_runtime(sample.framework, "cpu", len(os.sched_getaffinity(0)))
        to_tensor = module(sample.framework, "tensors").to_tensor
        function = materialize(sample, allow_unchecked_operators=True, **payload["options"])
    except Exception as error:
        answer({"problem": _describe(error)})
        raise
    answer({})
    with (directory / REQUESTS).open("r+b", buffering=0) as requests:
        pending = b""
        while True:
            while b"\n" not in pending:
                pending += requests.read(2**16)
            line, _, pending = pending.partition(b"\n")
            try:
                outputs = _call(function, json.loads(line), directory, to_tensor)
                described = runtime.write_outputs(outputs, directory / OUTPUTS)
                kinds = [kind_of(leaf) for leaf in leaves(outputs)]
                structure = describe_structure(outputs, itertools.count())
                answer({"values": described, "kinds": kinds, "structure": structure})
            except Exception as error:
                answer({"error": _describe(error)})


def _call(function: Any, request: dict[str, Any], directory: Path, to_tensor: Any) -> Any:
    tensors = read_tensors(directory / ARGUMENTS, request["values"], 2**62)
    values = [
        as_value(to_tensor, array, dtype, kind)
        for (dtype, array), kind in zip(tensors, request["kinds"], strict=True)
    ]
    pairs = list(zip(request["names"], values, strict=True))
    return function(
        *(value for name, value in pairs if name is None),
        **{name: value for name, value in pairs if name is not None},
    )


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_MAX_MESSAGE]


def prepare() -> None:
    """Import the framework and prepare the state shared by all jobs."""
    make_runtime(os.environ[FRAMEWORK_VARIABLE], "cpu", 1)
    module(os.environ[FRAMEWORK_VARIABLE], "materialize")
    prepare_blocks()
