"""Tensor comprehensions as tasks of `graphnet_datasets.tuning`.

Only this folder imports `tuning`. It is loaded through the entry point `tc` of the languages of
tasks, and by `graphnet tc tasks`.
"""

KIND = "tc"
"""Kind of the targets of these tasks."""
