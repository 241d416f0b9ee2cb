def pattern(x):
    return x.sigmoid()


def replacement(x):
    return x.sigmoid()
