"""The packages in a wheel, and the text of its page on PyPI; all else is in `setup.cfg`.

`metrics/` is at the top of the repository, where users of `evaluate` look for it
(`evaluate.load("metrics/speedup_score")`). It is installed as `graphnet_datasets.metrics`, and that
mapping needs the packages listed.

README links to files and pictures beside it. PyPI has no files beside it, so its page has the texts
of these links and no pictures.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)[^)]+\)")


def description():
    """Return the text of README without links to files and without their pictures."""
    text = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
    return LINK.sub(lambda link: "" if link[1] else link[2], text)


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    packages=[
        *find_packages(include=["graphnet_datasets", "graphnet_datasets.*"]),
        "graphnet_datasets.metrics",
        *(f"graphnet_datasets.metrics.{name}" for name in find_packages("metrics")),
    ],
    package_dir={"graphnet_datasets.metrics": "metrics"},
)
