"""Fused steps of optimizers."""

ENTRIES = """
_fused_adagrad _fused_adam _fused_adamw _fused_sgd: aten*
"""
