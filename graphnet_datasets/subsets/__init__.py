"""Representative subsets of samples."""

from .coverage import KINDS, READ_COLUMNS, Covering, cover
from .prediction import Prediction, predict

__all__ = ["KINDS", "READ_COLUMNS", "Covering", "Prediction", "cover", "predict"]
