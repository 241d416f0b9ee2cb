def candidate(x, weight):
    return x.view(7, 7, 7)
