"""Import of GraphNet directory trees and of recorded operator calls as datasets."""

from .importer import import_directories
from .operator_calls import import_operator_calls, read_operator_calls
from .outcomes import FolderOutcome, ImportReport, read_report

__all__ = [
    "FolderOutcome",
    "ImportReport",
    "import_directories",
    "import_operator_calls",
    "read_operator_calls",
    "read_report",
]
