"""Representative subsets of samples."""

from .coverage import KINDS, Covering, cover
from .prediction import Prediction, predict

__all__ = ["KINDS", "Covering", "Prediction", "cover", "predict"]
