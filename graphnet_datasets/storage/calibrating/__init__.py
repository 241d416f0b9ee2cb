"""Calibration of rows in isolated processes, and of all tables of a dataset."""

from .rows import CALIBRATION_LIMITS, calibrate_rows
from .tables import calibrate_tables

__all__ = ["CALIBRATION_LIMITS", "calibrate_rows", "calibrate_tables"]
