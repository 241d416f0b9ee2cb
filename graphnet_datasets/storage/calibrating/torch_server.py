"""The fork server that calibrates samples of torch."""

import torch

from ...frameworks.torch import calibration, shapes, tensors
from ...inputs import prepare_blocks
from ...isolation import serve
from .worker import work

IMPORTED = (calibration, shapes, tensors)


def main() -> None:
    """Prepare what all jobs need, and serve them."""
    torch.set_num_threads(1)  # several jobs run beside each other, and sums keep their order
    prepare_blocks()
    serve(work)


if __name__ == "__main__":
    main()
