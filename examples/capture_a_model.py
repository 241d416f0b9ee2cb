"""Capture a model, keep its graph as a row, and run the graph that was read back.

python examples/capture_a_model.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from graphnet_datasets import (
    Sample,
    extract,
    load_dataset,
    make_inputs,
    materialize,
    write_table,
)


@extract(name="example/gated_mlp", task="nlp")
class GatedMlp(torch.nn.Module):
    """The feed-forward block of many language models."""

    def __init__(self, width: int = 32, hidden: int = 64) -> None:
        super().__init__()
        self.gate = torch.nn.Linear(width, hidden, bias=False)
        self.up = torch.nn.Linear(width, hidden, bias=False)
        self.down = torch.nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))


def main() -> None:
    model = GatedMlp().eval()
    model(torch.randn(2, 8, 32))
    (sample,) = model.samples
    print(sample.to_source())

    with tempfile.TemporaryDirectory() as directory:
        path = write_table([sample], Path(directory) / "mine.parquet")
        row = load_dataset(path, split="train")[0]
    again = Sample.from_row(row)
    print("equal to what was captured:", again == sample)
    module = materialize(again, weights="parameters")
    outputs = module(**make_inputs(again, weights="parameters"))
    print(f"{again.id}: {again.num_ops} operators, output {tuple(outputs[0].shape)}")


if __name__ == "__main__":
    main()
