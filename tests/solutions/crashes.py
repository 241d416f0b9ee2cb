import ctypes


def candidate(x, weight):
    return ctypes.string_at(0)
