"""Rows calibrated in processes of their own, and the tables of a dataset with them."""

from .rows import CALIBRATION_LIMITS, calibrate_rows
from .tables import calibrate_tables

__all__ = ["CALIBRATION_LIMITS", "calibrate_rows", "calibrate_tables"]
