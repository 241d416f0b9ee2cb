"""What GraphNet's directories of a framework look like, as far as they differ."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class TextForm:
    """The differences between the directories of two frameworks.

    `class_prefix` begins the classes of the metadata files and `dtype_prefix` their dtypes. With
    `has_data_among_weights` all inputs stand in `weight_meta.py`; with `has_constraints_always` the
    file of symbolic dimensions is there even where there are none.
    """

    class_prefix: str = "Program_weight_tensor_"
    dtype_prefix: str = ""
    has_data_among_weights: bool = False
    has_constraints_always: bool = False
