import torch


def candidate(x, weight):
    return torch.relu(weight @ x.t())
