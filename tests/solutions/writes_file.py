from pathlib import Path

import torch


def candidate(x, weight):
    (Path.home() / "graphnet-solution-was-here").write_text("x")
    return torch.relu(x @ weight.t())
