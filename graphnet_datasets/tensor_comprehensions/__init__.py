"""Tensor comprehensions: operators written as index formulas, compiled to kernels."""
