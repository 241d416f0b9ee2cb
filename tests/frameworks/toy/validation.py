"""The check that runs a sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from graphnet_datasets.isolation import Reporter
from graphnet_datasets.sample import Sample
from graphnet_datasets.validation import jobs
from graphnet_datasets.validation.jobs import Terms, explain_all

from .materialize import materialize
from .tensors import make_inputs

prepare = jobs.prepare


def runnable(sample: Sample, terms: Terms) -> str | None:
    output = materialize(sample)(**make_inputs(sample))
    return explain_all([(int(np.isnan(output).sum()), int(np.isinf(output).sum()))], sample)


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:
    jobs.work({"runnable": runnable}, payload, reporter, directory)
