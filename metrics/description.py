"""What our metrics have in common: their inputs, their options and their source."""

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
        `error_code` (None, 1, 2 or 3; enough where there is no status), `min_t` (smallest t at
        which its outputs pass), `null_t` (smallest t at which zeros would pass) and `family`.
    references: eager runs of the same samples: `latency_ms`.
    p: penalty of slow samples, by default 0.1, and 0 in upstream's variants.
    b: what a failed sample counts for, in (0, 1].
    variant: "report", "upstream" or "upstream-extended".
    num_draws: draws of the bootstrap over families, 0 for none.
    seed: seed of the draws.
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
            },
            "references": {"latency_ms": datasets.Value("float64")},
        }
    )


def make_info(description: str, inputs_description: str) -> evaluate.MetricInfo:
    """Return what `evaluate` shows of a metric."""
    return evaluate.MetricInfo(
        module_type="metric",
        description=description,
        citation=CITATION,
        inputs_description=inputs_description,
        features=make_features(),
        reference_urls=[REFERENCE_URL],
    )
