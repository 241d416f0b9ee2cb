import torch


def candidate(x, weight):
    return torch.relu(x.double() @ weight.double().t())
