def pattern(x):
    return x.relu()


def replacement(x):
    return x.abs()
