"""GPU backend: nests mapped to programs and tiles, printed as Triton."""

from .body import Launch
from .loading import compile_triton, load_functions
from .program import TritonProgram, write_triton

__all__ = ["Launch", "TritonProgram", "compile_triton", "load_functions", "write_triton"]
