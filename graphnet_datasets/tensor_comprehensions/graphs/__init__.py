"""Aten graphs as definitions: rules by operator, groups without cycles, kernels in their place."""
