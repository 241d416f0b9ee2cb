"""Validation of samples: named checks, each with its evidence."""

from .outcomes import CHECKS, RUNNING, CheckResult, Validation
from .validator import Validator, validate

__all__ = ["CHECKS", "RUNNING", "CheckResult", "Validation", "Validator", "validate"]
