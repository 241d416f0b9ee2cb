"""Branches and loops, whose bodies are graphs among the arguments.

The entry `cond` is also that of `torch.linalg.cond`, the condition number.
"""

ENTRIES = """
cond: higher_order linalg checked
scan while_loop: higher_order checked
"""
