"""Lowering of aten graphs: rules for operators, acyclic groups, and kernels that replace them."""
