"""Which packages a wheel holds: the library, and the metric modules that stand beside it.

`metrics/` is at the top of the repository, where users of `evaluate` look for it
(`evaluate.load("metrics/speedup_score")`); it is installed as `graphnet_datasets.metrics`. All
else is in `setup.cfg`: this file exists because that mapping needs the packages listed.
"""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["graphnet_datasets", "graphnet_datasets.*"]),
        "graphnet_datasets.metrics",
        *(f"graphnet_datasets.metrics.{name}" for name in find_packages("metrics")),
    ],
    package_dir={"graphnet_datasets.metrics": "metrics"},
)
