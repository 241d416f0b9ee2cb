"""Run untrusted jobs in separate processes, so that a crash, hang or fork affects only the job."""

from .client import ForkServer
from .executors import EXECUTORS, check_executor, open_pool
from .keeping import keep_servers
from .limits import Limits
from .linux import descendants, kill_descendants, peak_memory_bytes, reset_peak_memory
from .pool import RESULT_FILE, Finished, LocalPool, Pool, PoolJob, Work, Worker, num_processors
from .reporting import Reporter, describe_error
from .stamps import PHASE_PREFIX, Stamp, StampSender
from .watch import Ending, Outcome

__all__ = [
    "EXECUTORS",
    "PHASE_PREFIX",
    "RESULT_FILE",
    "Ending",
    "Finished",
    "ForkServer",
    "Limits",
    "LocalPool",
    "Outcome",
    "Pool",
    "PoolJob",
    "Reporter",
    "Stamp",
    "StampSender",
    "Work",
    "Worker",
    "check_executor",
    "descendants",
    "describe_error",
    "keep_servers",
    "kill_descendants",
    "num_processors",
    "open_pool",
    "peak_memory_bytes",
    "reset_peak_memory",
]
