"""Reviewed data about state operators, aliases and overloads.

Different torch versions print the same function under different names. Aliases map them to one
canonical name, so that hashes do not depend on the version.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....operators import OperatorNames
from .words import words

STATE = words(
    """
    torch._C._log_api_usage_once torch._C._set_grad_enabled
    torch._functorch.predispatch._add_batch_dim torch._functorch.predispatch._remove_batch_dim
    torch._functorch.predispatch._vmap_decrement_nesting
    torch._functorch.predispatch._vmap_increment_nesting
    torch._functorch.predispatch.lazy_load_decompositions
    torch.amp.autocast_mode._enter_autocast torch.amp.autocast_mode._exit_autocast
    torch.autograd.grad_mode._enter_inference_mode torch.autograd.grad_mode._exit_inference_mode
    """
)
"""Operators that affect later operators, and are kept even if their values are unused."""

GRAD_MODE = "torch._C._set_grad_enabled"
VMAP = "torch._functorch.predispatch._vmap_increment_nesting"

PAIRS: Mapping[str, str] = {
    "torch.amp.autocast_mode._enter_autocast": "torch.amp.autocast_mode._exit_autocast",
    "torch.autograd.grad_mode._enter_inference_mode": (
        "torch.autograd.grad_mode._exit_inference_mode"
    ),
    VMAP: "torch._functorch.predispatch._vmap_decrement_nesting",
}
"""Operators that open and close regions; a graph must close each region it opens."""

_VF_DIFFERS = OperatorNames("VF_differs")

_PUBLIC = OperatorNames("public")

_PREDISPATCH = "torch._functorch.predispatch"
ALIASES: Mapping[str, str] = {
    "torch._C._nn.log_sigmoid": "torch.nn.functional.logsigmoid",
    "torch.nn.functional._max_pool1d": "torch.nn.functional.max_pool1d",
    "torch.nn.functional._max_pool2d": "torch.nn.functional.max_pool2d",
    "torch.nn.functional._max_pool3d": "torch.nn.functional.max_pool3d",
    "torch.nn.functional._threshold": "torch.nn.functional.threshold",
    "torch._C._sparse._sparse_addmm": "torch.sparse.addmm",
    "torch._C._sparse._sparse_mm": "torch.sparse.mm",
    "torch._C._sparse._spsolve": "torch.sparse.spsolve",
    "torch._C._sparse.sparse_sampled_addmm": "torch.sparse.sampled_addmm",
    "torch._C._functorch._add_batch_dim": f"{_PREDISPATCH}._add_batch_dim",
    "torch._C._functorch._remove_batch_dim": f"{_PREDISPATCH}._remove_batch_dim",
    "torch._C._functorch._vmap_increment_nesting": f"{_PREDISPATCH}._vmap_increment_nesting",
    "torch._C._functorch._vmap_decrement_nesting": f"{_PREDISPATCH}._vmap_decrement_nesting",
    "torch._functorch.vmap._add_batch_dim": f"{_PREDISPATCH}._add_batch_dim",
    "torch._functorch.vmap._remove_batch_dim": f"{_PREDISPATCH}._remove_batch_dim",
    "torch._functorch.vmap._vmap_increment_nesting": f"{_PREDISPATCH}._vmap_increment_nesting",
    "torch._functorch.vmap._vmap_decrement_nesting": f"{_PREDISPATCH}._vmap_decrement_nesting",
    "torch._functorch.vmap.lazy_load_decompositions": f"{_PREDISPATCH}.lazy_load_decompositions",
    "torch.amp._enter_autocast": "torch.amp.autocast_mode._enter_autocast",
    "torch.amp._exit_autocast": "torch.amp.autocast_mode._exit_autocast",
    "torch.Tensor.__abs__": "torch.Tensor.abs",
    "torch.Tensor.__idiv__": "torch.Tensor.__itruediv__",
    "torch.Tensor.__neg__": "torch.Tensor.neg",
    "torch.Tensor.__pos__": "torch.Tensor.positive",
    "torch.Tensor.__rdiv__": "torch.Tensor.__rtruediv__",
    "torch._C._autograd._get_data_attr": "torch.Tensor.detach",  # how dynamo writes `.data`
    "torch._refs.tensor": "torch.tensor",  # and `torch.tensor` of sizes that are symbols
    "torch._sym_sqrt": "torch.sym_sqrt",
    "torch.dsmm": "torch.mm",
    "torch.saddmm": "torch.sspaddmm",
    "torch.spmm": "torch.mm",
}

ATEN_OUT_OVERLOADS = words(
    """
    L OutScalar_Other OutScalar_Self OutTensor Q U X a dim_max dim_min dim_values dimname_values
    dimname_values_stable eigenvalues eigvals grad_input inverse names_dim_max names_dim_min
    names_dim_values out_ out_mode out_rcond_tensor out_tol_tensor output result sign values
    values_stable
    """
)
"""Overloads that write to an `out` argument although their name does not end in `out`."""


def functional_alias(name: str) -> str | None:
    """Return the public name for `torch.functional.X`, `torch._VF.X` and similar, or None."""
    namespace, _, last = name.rpartition(".")
    if namespace == "torch.functional" and last in _PUBLIC:
        return f"torch.{last}"
    if namespace in (
        "torch._VF",
        "torch._C._VariableFunctions",
        "torch._C._VariableFunctionsClass",
    ):
        return None if last in _VF_DIFFERS else f"torch.{last}"
    for private, prefix, public in _PRIVATE_NAMESPACES:
        if namespace == private and last.startswith(prefix):
            return f"{public}.{last.removeprefix(prefix)}"
    if namespace == "_operator":
        return f"operator.{last}"
    return None


_PRIVATE_NAMESPACES = (
    ("torch._C._linalg", "linalg_", "torch.linalg"),
    ("torch._C._fft", "fft_", "torch.fft"),
    ("torch._C._special", "special_", "torch.special"),
)
