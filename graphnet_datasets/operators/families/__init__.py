"""The entries of all operators, by family. `graphnet_datasets.operators` explains their form."""

from . import (
    attention,
    backward,
    contractions,
    control_flow,
    creation,
    detection,
    fourier,
    indexing,
    linear_algebra,
    losses,
    normalization,
    optimizers,
    pointwise,
    pooling,
    python,
    quantization,
    queries,
    random,
    recurrent,
    reductions,
    sorting,
    sparse,
    special,
    state,
    views,
)

FAMILIES = (
    attention, backward, contractions, control_flow, creation, detection, fourier, indexing,
    linear_algebra, losses, normalization, optimizers, pointwise, pooling, python, quantization,
    queries, random, recurrent, reductions, sorting, sparse, special, state, views,
)  # fmt: skip
