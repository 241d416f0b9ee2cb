import torch


def candidate(x, weight):
    return torch.relu(x @ weight.t())
