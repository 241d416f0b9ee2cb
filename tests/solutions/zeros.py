import torch


def candidate(x, weight):
    return torch.zeros(x.shape[0], weight.shape[0])
