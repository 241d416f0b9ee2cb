"""Import of GraphNet directory trees as a dataset."""

from .importer import import_directories
from .outcomes import FolderOutcome, ImportReport, read_report

__all__ = ["FolderOutcome", "ImportReport", "import_directories", "read_report"]
