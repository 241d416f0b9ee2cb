"""Import of GraphNet directory trees as a dataset."""

from ...isolation import EXECUTORS
from .importer import import_directories
from .outcomes import FolderOutcome, ImportReport, read_report

__all__ = ["EXECUTORS", "FolderOutcome", "ImportReport", "import_directories", "read_report"]
