def candidate(x, weight):
    return x @ weight.t()
