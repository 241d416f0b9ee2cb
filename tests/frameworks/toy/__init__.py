"""A third framework: NumPy arrays, four operators, a clock, an input rule and a validation."""
