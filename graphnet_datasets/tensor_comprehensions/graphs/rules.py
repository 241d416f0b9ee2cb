"""All rules; importing this module registers them."""

from . import contractions, creation, normalisation, pointwise, reductions, views
from .registry import RULES, VIEWS

__all__ = [
    "RULES",
    "VIEWS",
    "contractions",
    "creation",
    "normalisation",
    "pointwise",
    "reductions",
    "views",
]
