import time

import torch


def candidate(x, weight):
    time.sleep(0.003)
    return torch.relu(x @ weight.t())
