"""Common parts of our metrics: their inputs, options and source."""

from typing import Any

import datasets
import evaluate

CITATION = """\
@article{graphnet2025,
  title={GraphNet: A Large-Scale Computational Graph Dataset for Tensor Compiler Research},
  journal={arXiv preprint arXiv:2510.24035},
  year={2025}
}
"""

REFERENCE_URL = "https://arxiv.org/abs/2510.24035"

ARGUMENTS = """
Args:
    predictions: compiled runs, one per sample: `latency_ms` (None where it failed), `status` ("ok",
        "output_mismatch", "run_failed", "compile_failed", "baseline_failed", "harness_failed"),
        `error_code` (None, 1, 2 or 3; sufficient without a status), `min_t` (smallest t at
        which its outputs pass), `null_t` (smallest t at which zeros would pass) and `family`; and,
        if known, `eager_t` (smallest t at which eager agrees with float64),
        `is_deterministic` and `determinism_t` (of eager against itself), `speedup_low` and
        `speedup_high` (95 % interval of the timing) and `warnings`.
    references: eager runs of the same samples: `latency_ms`.
    p: penalty of slow samples, by default 0.1, and 0 in upstream's variants.
    b: weight of a failed sample, in (0, 1].
    variant: "report", "decidable", "upstream" or "upstream-extended".
"""


def make_features() -> datasets.Features:
    """Return the types of one prediction and one reference."""
    return datasets.Features(
        {
            "predictions": {
                "latency_ms": datasets.Value("float64"),
                "status": datasets.Value("string"),
                "error_code": datasets.Value("int8"),
                "min_t": datasets.Value("float64"),
                "null_t": datasets.Value("float64"),
                "family": datasets.Value("string"),
                "eager_t": datasets.Value("float64"),
                "is_deterministic": datasets.Value("bool"),
                "determinism_t": datasets.Value("float64"),
                "speedup_low": datasets.Value("float64"),
                "speedup_high": datasets.Value("float64"),
                "warnings": datasets.List(datasets.Value("string")),
            },
            "references": {"latency_ms": datasets.Value("float64")},
        }
    )


def make_info(
    description: str, inputs_description: str, features: datasets.Features | None = None
) -> evaluate.MetricInfo:
    """Return the metric's information for `evaluate`, by default with the features of a score."""
    is_score = features is None
    return evaluate.MetricInfo(
        module_type="metric",
        description=description,
        citation=CITATION if is_score else "",
        inputs_description=inputs_description,
        features=make_features() if features is None else features,
        reference_urls=[REFERENCE_URL] if is_score else [],
    )


class ScoreMetric(evaluate.Metric):
    """A metric whose predictions may omit fields of a run or set them to None."""

    def _enforce_nested_string_type(self, schema: Any, obj: Any) -> None:
        """Reject non-strings in string fields, but allow None, unlike `evaluate`."""
        if isinstance(schema, dict):
            for name, part in schema.items():
                self._enforce_nested_string_type(part, obj.get(name))
        elif obj is not None:
            super()._enforce_nested_string_type(schema, obj)
