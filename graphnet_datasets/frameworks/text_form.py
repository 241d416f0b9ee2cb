"""Differences between the GraphNet directory formats of the frameworks."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class TextForm:
    """Framework-specific details of a GraphNet directory.

    `class_prefix` is the prefix of class names in the metadata files, and `dtype_prefix` that of
    dtypes. With `has_data_among_weights` all inputs are in `weight_meta.py`. With
    `has_constraints_always` the file of symbolic dimensions always exists.
    """

    class_prefix: str = "Program_weight_tensor_"
    dtype_prefix: str = ""
    has_data_among_weights: bool = False
    has_constraints_always: bool = False
