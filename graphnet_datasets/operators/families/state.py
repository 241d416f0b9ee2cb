"""Assertions and constraints on symbolic sizes."""

ENTRIES = """
_add_batch_dim: shares
_assert _check _check_index _check_is_size _check_tensor_all _check_type _check_value
    _constrain_as_size: torch checked@torch
_assert_async _assert_scalar _assert_tensor_metadata: aten torch checked@aten,torch flops=0
_functional_assert_async _functional_assert_scalar: aten torch checked@aten,torch
_functional_sym_constrain_range _functional_sym_constrain_range_for_size: aten torch checked@torch
_remove_batch_dim: shares literals=constant.2.2
sym_constrain_range sym_constrain_range_for_size: aten torch checked
"""
