"""Walks the recommenders of torch-rechub, with the features of their published datasets.

Criteo is the log of advertisements of Kaggle's contest, with the vocabularies that Naumov et al.
(2019, "Deep Learning Recommendation Model for Personalization and Recommendation Systems") list;
MovieLens is the one of a million ratings; Amazon is its electronics, as in Zhou et al. (2018,
"Deep Interest Network for Click-Through Rate Prediction"); Gowalla are its check-ins.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .workloads import workload_of

CRITEO = (
    1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992,
    5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572,
)  # fmt: skip
"""Vocabulary sizes of the 26 categorical features of Criteo."""

NUMBERS = [(f"I{place}",) for place in range(1, 14)]
CATEGORIES = [(f"C{place}", size, 16) for place, size in enumerate(CRITEO, 1)]
USER = [
    ("user_id", 6041, 16), ("gender", 3, 16), ("age", 8, 16), ("occupation", 22, 16),
    ("zip", 3440, 16),
]  # fmt: skip
MOVIE = [("movie_id", 3953, 16), ("genre", 302, 16)]
WATCHED = [("hist_movie_id", 3953, 16, "concat", "movie_id")]
REJECTED = [("neg_movie_id", 3953, 16, "concat", "movie_id")]
PROFILE = [("user_id", 192404, 64)]
ITEM = [("item_id", 63002, 64), ("category_id", 802, 64)]
BOUGHT = [
    ("hist_item_id", 63002, 64, "concat", "item_id"),
    ("hist_category_id", 802, 64, "concat", "category_id"),
]
POOLED = [("hist_movie_id", 3953, 16, "mean", "movie_id")]
TOWER = {"dims": [256, 128], "dropout": 0.2, "activation": "relu"}
SHORT_TOWER = {"dims": [256, 128, 16], "activation": "prelu"}
HEADS = [{"dims": [64]}, {"dims": [64]}]
BOTH = ["classification", "classification"]
HISTORY = 50
NEGATIVES = 20
BATCH = 2048

CALLS: dict[str, dict[str, Any]] = {
    "ranking.WideDeep": {
        "wide_features": NUMBERS, "deep_features": CATEGORIES, "mlp_params": TOWER,
    },
    "ranking.DeepFM": {
        "deep_features": NUMBERS + CATEGORIES, "fm_features": CATEGORIES, "mlp_params": TOWER,
    },
    "ranking.DCN": {"features": NUMBERS + CATEGORIES, "n_cross_layers": 3, "mlp_params": TOWER},
    "ranking.DCNv2": {"features": NUMBERS + CATEGORIES, "n_cross_layers": 3, "mlp_params": TOWER},
    "ranking.EDCN": {"features": CATEGORIES, "n_cross_layers": 3, "mlp_params": TOWER},
    "ranking.AFM": {"fm_features": CATEGORIES, "embed_dim": 16},
    "ranking.FiBiNet": {"features": CATEGORIES, "mlp_params": TOWER},
    "ranking.AutoInt": {
        "sparse_features": CATEGORIES, "dense_features": NUMBERS, "mlp_params": TOWER,
    },
    "ranking.DIN": {
        "features": PROFILE, "history_features": BOUGHT, "target_features": ITEM,
        "mlp_params": {"dims": [200, 80]}, "attention_mlp_params": {"dims": [80, 40]},
    },
    "ranking.BST": {
        "features": PROFILE, "history_features": BOUGHT, "target_features": ITEM,
        "mlp_params": {"dims": [1024, 512, 256]},
    },
    "multi_task.SharedBottom": {
        "features": NUMBERS + CATEGORIES, "task_types": BOTH, "bottom_params": {"dims": [512, 256]},
        "tower_params_list": HEADS,
    },
    "multi_task.MMOE": {
        "features": NUMBERS + CATEGORIES, "task_types": BOTH, "n_expert": 8,
        "expert_params": {"dims": [512, 256]}, "tower_params_list": HEADS,
    },
    "multi_task.PLE": {
        "features": NUMBERS + CATEGORIES, "task_types": BOTH, "n_level": 2, "n_expert_specific": 4,
        "n_expert_shared": 4, "expert_params": {"dims": [512, 256]}, "tower_params_list": HEADS,
    },
    "multi_task.ESMM": {
        "user_features": USER, "item_features": MOVIE, "cvr_params": {"dims": [512, 256]},
        "ctr_params": {"dims": [512, 256]},
    },
    "multi_task.AITM": {
        "features": NUMBERS + CATEGORIES, "n_task": 2, "bottom_params": {"dims": [512, 256]},
        "tower_params_list": HEADS,
    },
    "matching.DSSM": {
        "user_features": USER + POOLED, "item_features": MOVIE, "user_params": SHORT_TOWER,
        "item_params": SHORT_TOWER,
    },
    "matching.YoutubeDNN": {
        "user_features": USER + POOLED, "item_features": MOVIE[:1], "neg_item_feature": REJECTED,
        "user_params": SHORT_TOWER,
    },
    "matching.GRU4Rec": {
        "user_features": USER, "history_features": WATCHED, "item_features": MOVIE[:1],
        "neg_item_feature": REJECTED, "user_params": SHORT_TOWER,
    },
    "matching.MIND": {
        "user_features": USER, "history_features": WATCHED, "item_features": MOVIE[:1],
        "neg_item_feature": REJECTED, "max_length": HISTORY,
    },
    "matching.ComirecSA": {
        "user_features": USER, "history_features": WATCHED, "item_features": MOVIE[:1],
        "neg_item_feature": REJECTED,
    },
    "matching.ComirecDR": {
        "user_features": USER, "history_features": WATCHED, "item_features": MOVIE[:1],
        "neg_item_feature": REJECTED, "max_length": HISTORY,
    },
    "matching.STAMP": {
        "item_history_feature": ("session", 43098, 100, "concat"),
        "weight_std": 0.05, "emb_std": 0.002,
    },
}  # fmt: skip
"""Constructor arguments of each model.

Left out: SASRec, which numbers positions in NumPy; DIEN and NARM, which pack sequences; SINE, which
takes names for features; the field-aware machines, whose tables hold 26 vectors an identifier.
"""


def walk() -> Iterator[str]:
    """Yield a catalog line for each recommender."""
    for builder, arguments in CALLS.items():
        yield _line(builder, arguments)


def _line(builder: str, arguments: Mapping[str, Any]) -> str:
    name = f"torch_rechub/{builder.partition('.')[2]}"
    # Embeddings convert numbers to float32 themselves, and the batch is a training batch.
    workload = dataclasses.replace(workload_of(name), batch=1, dtype="float32")
    fields = dict(_fields(list(arguments.values())))
    overrides = " ".join(f"{key}={_literal(value)}" for key, value in arguments.items())
    calls = " ".join(f"{field}={text}" for field, text in fields.items())
    dynamic = " ".join(f"{field}.0" for field in fields) if workload.is_dynamic else ""
    columns = (
        f"{name}{workload.suffix}", "other", "torch_rechub", builder, overrides, calls, "float32",
        workload.mode, dynamic, "",
    )  # fmt: skip
    return " | ".join(columns)


def _literal(value: Any) -> str:
    return re.sub(r"\s", "", repr(value))


def _fields(values: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield the field of each feature with the specification of its example; 0 pads a history."""
    for value in values:
        if isinstance(value, list):
            yield from _fields(value)
        elif isinstance(value, tuple):
            name, *rest = value
            if not rest:
                yield name, f"uniform({BATCH})"
            elif len(rest) == 2:
                yield name, f"ids({BATCH}; {rest[0]})"
            else:
                length = NEGATIVES if name.startswith("neg_") else HISTORY
                yield name, f"ids({BATCH},{length}; 1, {rest[0]})"
