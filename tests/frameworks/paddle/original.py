"""Run a GraphNet directory's own `model.py` and the materialized sample on the same inputs.

For the tests only, in a separate process: `python -m tests.frameworks.paddle.original DIR`. It
executes the text of a sample, which the library never does, and prints lines of JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

MAX_INPUT_BYTES = 1.1 * 2**30  # they are copied once, so that no run sees what another wrote
MAX_PEAK_BYTES = 2.6 * 2**30
MAX_ADDRESS_BYTES = 12 * 2**30
"""Two originals take all the memory of a machine before they abort."""


def main(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_BYTES, MAX_ADDRESS_BYTES))
    os.environ["GLOG_minloglevel"] = "3"  # noqa: SIM112 - glog spells it so
    warnings.simplefilter("ignore")
    from graphnet_datasets.frameworks.paddle.printer import print_source
    from graphnet_datasets.frameworks.paddle.source import parse_source
    from graphnet_datasets.frameworks.tensor_metadata import parse_tensor_metadata

    metadata = {}
    for name in ("weight_meta.py", "input_meta.py"):
        metadata |= parse_tensor_metadata((folder / name).read_text(), name)
    text = (folder / "model.py").read_text()
    sample = parse_source(text, metadata, sample_id="original/sample")
    if sample.input_bytes > MAX_INPUT_BYTES:
        report("too large")
        return
    from graphnet_datasets.frameworks.paddle.materialize import materialize
    from graphnet_datasets.frameworks.paddle.shapes import measure_footprint
    from graphnet_datasets.frameworks.paddle.tensors import make_inputs

    if measure_footprint(sample).peak_bytes > MAX_PEAK_BYTES:
        report("too large")
        return
    inputs = tuple(make_inputs(sample).values())
    # Written before the run, since an original may abort the whole process.
    report("original aborts")
    try:
        expected = digests(graph_of(text), inputs)
    except Exception as error:
        report("original fails", error=type(error).__name__)
        return
    report("aborts where the original runs")
    printed = digests(graph_of(print_source(sample, "source")), inputs)
    found = digests(materialize(sample), inputs)
    report("equal" if found == expected == printed else "different", num_outputs=len(expected))


def graph_of(text: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(text, "model.py", "exec"), namespace)  # noqa: S102 - the original, in its process
    return namespace["GraphModule"]()


def digests(function: Any, inputs: tuple[Any, ...]) -> list[str]:
    import paddle

    paddle.seed(7)
    with paddle.no_grad():
        outputs = function(*[each.clone() for each in inputs])
    found = []
    for leaf in leaves(outputs):
        described = f"{leaf.dtype} {list(leaf.shape)} ".encode()
        found.append(hashlib.sha256(described + leaf.numpy().tobytes()).hexdigest())
    return found


def leaves(structure: Any) -> list[Any]:
    if isinstance(structure, list | tuple):
        return [leaf for item in structure for leaf in leaves(item)]
    return [structure]


def report(status: str, **details: Any) -> None:
    sys.stdout.write(json.dumps({"status": status, **details}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
