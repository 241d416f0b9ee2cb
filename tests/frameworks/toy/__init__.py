"""A third framework in a hundred lines: NumPy arrays and three operators."""
