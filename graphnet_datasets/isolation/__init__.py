"""Run what may crash, hang or fork, and lose nothing but the job itself."""

from .client import ForkServer
from .limits import Limits
from .linux import descendants, kill_descendants, peak_memory_bytes, reset_peak_memory
from .reporting import Reporter, describe_error
from .server import serve
from .watch import Ending, Outcome

__all__ = [
    "Ending",
    "ForkServer",
    "Limits",
    "Outcome",
    "Reporter",
    "descendants",
    "describe_error",
    "kill_descendants",
    "peak_memory_bytes",
    "reset_peak_memory",
    "serve",
]
