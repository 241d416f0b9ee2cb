"""The fork server for checks that run samples of torch."""

import torch
import torch._dynamo

from ..frameworks.torch import extract, materialize, shapes, tensors
from ..inputs import prepare_blocks
from ..isolation import serve
from .torch_worker import work

IMPORTED = (torch._dynamo, extract, materialize, shapes, tensors)


def main() -> None:
    """Prepare what all jobs need, and serve them."""
    prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
