"""`python -m graphnet_datasets …`, the same as `graphnet …`."""

from .cli import main

main()
