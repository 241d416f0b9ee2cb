import torch


def candidate(x, weight):
    return torch.relu(x.half() @ weight.half().t()).float()
