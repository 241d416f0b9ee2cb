"""Add a compiler in a few lines, and time it against eager on two small graphs.

    python examples/add_a_compiler.py

On the command line the same compiler is `--compiler examples/add_a_compiler.py:ChannelsLast`. To
publish one, name its class under the entry point `graphnet_datasets.compilers` of your package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from graphnet_datasets import load_dataset, register_compiler, run, speedup_score
from graphnet_datasets.compilers import Compiler


@register_compiler("channels-last", replace=True)
class ChannelsLast(Compiler):
    """Eager with the weights of convolutions in the memory format that CPUs and GPUs prefer."""

    name = "channels-last"

    def compile(
        self, module: Callable[..., Any], example_inputs: Mapping[str, Any]
    ) -> Callable[..., Any]:
        del example_inputs
        if isinstance(module, torch.nn.Module):
            for weight in module.parameters():
                if weight.dim() == 4:
                    weight.data = weight.data.contiguous(memory_format=torch.channels_last)
        return module


def main() -> None:
    small = [("framework", "=", "torch"), ("tags", "contains", "small")]
    rows = load_dataset("graphnet", "cv", split="train", filters=small)
    runs = run(rows.select(range(2)), compiler="channels-last")
    for record in runs:
        print(f"{record['sample_id']}: {record['status']}, speedup {record['speedup']}")
    print(speedup_score(runs))


if __name__ == "__main__":
    main()
