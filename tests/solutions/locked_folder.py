import os

import torch

os.makedirs("outer/inner")
for path in ("outer/inner/file", "outer/file"):
    open(path, "w").close()
os.chmod("outer/inner", 0)
os.chmod("outer", 0)


def candidate(x, weight):
    return torch.relu(x @ weight.t())
