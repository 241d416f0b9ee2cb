import torch


def candidate(x, weight):
    return torch.relu(x.bfloat16() @ weight.bfloat16().t()).float()
