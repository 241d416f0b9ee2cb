"""Framework backends, one package each, and dispatch by a sample's framework."""

from ..sample.vocabulary import framework_names
from .contract import (
    FRAMEWORK_VARIABLE,
    Framework,
    framework_named,
    module,
    offers,
)
from .dispatch import (
    calibrate,
    find_regions,
    find_results,
    make_inputs,
    materialize,
    measure_signal,
    print_source,
)
from .fusion import Fusion, Kernel, find_fused
from .gradients import Gradients, differentiate
from .stepping import observe

__all__ = [
    "FRAMEWORK_VARIABLE",
    "Framework",
    "Fusion",
    "Gradients",
    "Kernel",
    "calibrate",
    "differentiate",
    "find_fused",
    "find_regions",
    "find_results",
    "framework_named",
    "framework_names",
    "make_inputs",
    "materialize",
    "measure_signal",
    "module",
    "observe",
    "offers",
    "print_source",
]
