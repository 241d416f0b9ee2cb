import torch


def pattern(x, weight):
    return torch.nn.functional.linear(x, weight).relu()


def replacement(x, weight):
    return (x @ weight.t()).clamp(min=0)
