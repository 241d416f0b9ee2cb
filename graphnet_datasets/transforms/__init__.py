"""Transforms that derive samples from samples."""

from .backward import backward, differentiate
from .cast import autocast, cast
from .cut import Cutter, Part, cut
from .decompose import Decomposition, decompose
from .fusing import find_fusible
from .recompose import recompose
from .subgraphs import Subgraph, Subgraphs
from .symbolic import at_smaller_sizes, make_ladder, reify, spread_sizes, symbolise
from .translate import translate

__all__ = [
    "Cutter",
    "Decomposition",
    "Part",
    "Subgraph",
    "Subgraphs",
    "at_smaller_sizes",
    "autocast",
    "backward",
    "cast",
    "cut",
    "decompose",
    "differentiate",
    "find_fusible",
    "make_ladder",
    "recompose",
    "reify",
    "spread_sizes",
    "symbolise",
    "translate",
]
